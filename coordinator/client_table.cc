#include "coordinator/client_table.h"

#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {

void ClientTable::Greet(const PeerId& peer, const Uuid& client, Instant now,
                        std::size_t max_clients) {
  RemovePeer(peer);
  while (!sessions_.empty() && sessions_.size() >= max_clients) {
    RemovePeer(PeerId(by_heard_.begin()->second));
  }
  sessions_.emplace(peer, Session{.client = client, .heard_at = now});
  by_heard_.emplace(now, peer);
}

void ClientTable::RemovePeer(const PeerId& peer) {
  const auto session = sessions_.find(peer);
  if (session == sessions_.end()) return;
  by_heard_.erase({session->second.heard_at, peer});
  sessions_.erase(session);
}

std::optional<Uuid> ClientTable::Hear(const PeerId& peer, Instant now) {
  const auto session = sessions_.find(peer);
  if (session == sessions_.end()) return std::nullopt;
  by_heard_.erase({session->second.heard_at, peer});
  session->second.heard_at = now;
  by_heard_.emplace(now, peer);
  return session->second.client;
}

std::optional<Uuid> ClientTable::ClientOf(const PeerId& peer) const {
  const auto session = sessions_.find(peer);
  if (session == sessions_.end()) return std::nullopt;
  return session->second.client;
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
