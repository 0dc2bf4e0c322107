#include "coordinator/client_table.h"

#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {

bool ClientTable::Greet(const PeerId& peer, const Uuid& client, Instant now,
                        std::size_t max_clients) {
  const auto known = sessions_.find(peer);
  if (known == sessions_.end() && sessions_.size() >= max_clients) return false;
  sessions_[peer] = Session{.client = client, .heard_at = now};
  return true;
}

std::optional<Uuid> ClientTable::Hear(const PeerId& peer, Instant now) {
  const auto session = sessions_.find(peer);
  if (session == sessions_.end()) return std::nullopt;
  session->second.heard_at = now;
  return session->second.client;
}

std::optional<Uuid> ClientTable::ClientOf(const PeerId& peer) const {
  const auto session = sessions_.find(peer);
  if (session == sessions_.end()) return std::nullopt;
  return session->second.client;
}

void ClientTable::RemoveIdle(Instant heard_before) {
  std::erase_if(sessions_,
                [&](const auto& session) { return session.second.heard_at < heard_before; });
}

PendingRequest* ClientTable::FindPending(const RequestKey& key) {
  const auto request = pending_.find(key);
  return request == pending_.end() ? nullptr : &request->second;
}

void ClientTable::AddPending(const RequestKey& key, PendingRequest request) {
  const bool added = pending_.try_emplace(key, std::move(request)).second;
  LF_CHECK(added, "request {} is pending already", key.request.ToString());
}

PendingRequest ClientTable::TakePending(const RequestKey& key) {
  auto node = pending_.extract(key);
  LF_CHECK(!node.empty(), "request {} is not pending", key.request.ToString());
  return std::move(node.mapped());
}

}  // namespace loopfleet::coordinator
