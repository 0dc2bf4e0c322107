#include "coordinator/core/tables/client_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {

void ClientTable::NoteHeard(const PeerId& peer, const Session& session) {
  by_heard_.emplace(session.heard_at, peer);
  by_client_[session.guest.client].emplace(session.heard_at, peer);
}

void ClientTable::ForgetHeard(const PeerId& peer, const Session& session) {
  by_heard_.erase({session.heard_at, peer});
  const auto own = by_client_.find(session.guest.client);
  own->second.erase({session.heard_at, peer});
  if (own->second.empty()) by_client_.erase(own);
}

void ClientTable::Greet(const PeerId& peer, const Guest& guest, Instant now,
                        const GuestLimits& limits) {
  RemovePeer(peer);
  for (auto own = by_client_.find(guest.client);
       own != by_client_.end() && own->second.size() >= limits.max_connections_per_client;
       own = by_client_.find(guest.client)) {
    RemovePeer(PeerId(own->second.begin()->second));
  }
  while (!sessions_.empty() && sessions_.size() >= limits.max_connections) {
    RemovePeer(PeerId(by_heard_.begin()->second));
  }
  const auto added = sessions_.emplace(peer, Session{.guest = guest, .heard_at = now}).first;
  NoteHeard(peer, added->second);
}

void ClientTable::RemovePeer(const PeerId& peer) {
  const auto session = sessions_.find(peer);
  if (session == sessions_.end()) return;
  ForgetHeard(peer, session->second);
  sessions_.erase(session);
}

std::vector<PeerId> ClientTable::PeersWith(const std::set<KeyText>& keys) const {
  std::vector<PeerId> peers;
  for (const auto& [peer, session] : sessions_) {
    if (keys.contains(session.guest.key)) peers.push_back(peer);
  }
  return peers;
}

std::optional<Uuid> ClientTable::Hear(const PeerId& peer, const KeyText& key, Instant now) {
  const auto session = sessions_.find(peer);
  if (session == sessions_.end() || session->second.guest.key != key) return std::nullopt;
  ForgetHeard(peer, session->second);
  session->second.heard_at = now;
  NoteHeard(peer, session->second);
  return session->second.guest.client;
}

std::optional<Uuid> ClientTable::ClientOf(const PeerId& peer, const KeyText& key) const {
  const auto session = sessions_.find(peer);
  if (session == sessions_.end() || session->second.guest.key != key) return std::nullopt;
  return session->second.guest.client;
}

Uuid ClientTable::PayerOf(const PeerId& peer, const KeyText& key) const {
  if (const auto client = ClientOf(peer, key)) return *client;
  Uuid stranger;  // nil without keys
  std::memcpy(stranger.bytes.data(), key.data(), std::min(key.size(), sizeof stranger.bytes));
  return stranger;
}

void ClientTable::ForgetAsker(const PeerId& peer) {
  for (auto& [key, request] : pending_) {
    if (request.asker.peer == peer) request.asker = {};
  }
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
