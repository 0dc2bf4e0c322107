#pragma once
// Internal to wire: UnreadBytes counts the sent bytes of each peer that are still in this process's
// memory because the peer does not read. ZeroMQ bounds its queues only in messages, and a message
// may be a hundred bytes or a megabyte. A message counts from Take until the network has all of it
// or its connection is gone.
//
// One thread calls HasRoom and Take. ZeroMQ's threads call GiveBack, even after this object's end.

#include <zmq.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

namespace loopfleet::wire {

class UnreadBytes {
 public:
  // Approximate overhead of a queued message, which matters for many small ones.
  static constexpr std::size_t kMessageBytes = 256;

  explicit UnreadBytes(std::size_t limit_of_all) : limit_(limit_of_all) {}

  // A peer that has read everything always has room for one message, whatever the others hold.
  // Further messages may use at most a quarter of the free bytes, so the first peer that does not
  // read leaves four fifths to others. The total is at most the limit and one message per peer.
  bool HasRoom(const std::string& peer, std::size_t frame_bytes) const;
  // Makes the message to send and counts it as unread by `peer`.
  zmq::message_t Take(const std::string& peer, std::string frame);

  std::size_t of_all() const { return all_->load(std::memory_order_relaxed); }
  std::size_t peer_count() const { return peers_.size(); }  // peers remembered

 private:
  using Count = std::atomic<std::size_t>;
  struct Pending;  // owned by a message

  static void GiveBack(void* data, void* pending) noexcept;
  void PruneIdlePeers();

  const std::size_t limit_;
  std::shared_ptr<Count> all_ = std::make_shared<Count>(0);
  std::unordered_map<std::string, std::shared_ptr<Count>> peers_;
  std::size_t prune_threshold_ = 1024;  // entries of peers_
};

}  // namespace loopfleet::wire
