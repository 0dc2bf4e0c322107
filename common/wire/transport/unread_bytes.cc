#include "common/wire/transport/unread_bytes.h"

#include <algorithm>
#include <utility>

namespace loopfleet::wire {

struct UnreadBytes::Pending {
  std::string frame;
  std::size_t bytes;
  std::shared_ptr<Count> of_peer;
  std::shared_ptr<Count> of_all;
};

bool UnreadBytes::HasRoom(const std::string& peer, std::size_t frame_bytes) const {
  const auto found = peers_.find(peer);
  const std::size_t held =
      found == peers_.end() ? 0 : found->second->load(std::memory_order_relaxed);
  if (held == 0) return true;
  const std::size_t free = limit_ - std::min(limit_, of_all());
  return held + frame_bytes + kMessageBytes <= free / 4;
}

zmq::message_t UnreadBytes::Take(const std::string& peer, std::string frame) {
  if (peers_.size() >= prune_threshold_) PruneIdlePeers();
  std::shared_ptr<Count>& of_peer = peers_[peer];
  if (of_peer == nullptr) of_peer = std::make_shared<Count>(0);
  const std::size_t bytes = frame.size() + kMessageBytes;
  auto pending = std::make_unique<Pending>(
      Pending{.frame = std::move(frame), .bytes = bytes, .of_peer = of_peer, .of_all = all_});
  Pending& kept = *pending;
  zmq::message_t message(kept.frame.data(), kept.frame.size(), &GiveBack, pending.get());
  static_cast<void>(pending.release());  // owned by the message now
  kept.of_peer->fetch_add(bytes, std::memory_order_relaxed);
  kept.of_all->fetch_add(bytes, std::memory_order_relaxed);
  return message;
}

void UnreadBytes::GiveBack(void* /*data*/, void* pending) noexcept {
  const std::unique_ptr<Pending> given(static_cast<Pending*>(pending));
  given->of_peer->fetch_sub(given->bytes, std::memory_order_relaxed);
  given->of_all->fetch_sub(given->bytes, std::memory_order_relaxed);
}

// Keeps peers_ small although peers come and go. Doubling the threshold makes the amortized cost of
// each peer constant.
void UnreadBytes::PruneIdlePeers() {
  std::erase_if(peers_, [](const auto& entry) { return entry.second->load() == 0; });
  prune_threshold_ = std::max<std::size_t>(1024, 2 * peers_.size());
}

}  // namespace loopfleet::wire
