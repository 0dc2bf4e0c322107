#pragma once
// Internal to wire: UnreadBytes, how much of what was sent to each peer is still in this process's
// memory, because the peer does not read. ZeroMQ bounds its queues in messages alone, and a message
// may be a hundred bytes or a megabyte. A message counts from Take until the network has all of it,
// or until its connection is gone.
//
// One thread asks and takes; ZeroMQ's threads give back, also after this object is gone.

#include <zmq.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

namespace loopfleet::wire {

class UnreadBytes {
 public:
  // What a queued message takes beside its frame, about: many small ones are memory, too.
  static constexpr std::size_t kMessageBytes = 256;

  explicit UnreadBytes(std::size_t limit_of_all) : limit_(limit_of_all) {}

  // Whoever has read everything gets the next message, whatever others do. Further ones wait only
  // within a quarter of what is free, so the first who does not read leaves four fifths to others.
  // All together: the limit, and one message for each peer.
  bool HasRoom(const std::string& peer, std::size_t frame_bytes) const;
  // The message to send, of which `peer` has not read anything yet.
  zmq::message_t Take(const std::string& peer, std::string frame);

  std::size_t of_all() const { return all_->load(std::memory_order_relaxed); }
  std::size_t peer_count() const { return peers_.size(); }  // that are remembered

 private:
  using Count = std::atomic<std::size_t>;
  struct Pending;  // behind a message

  static void GiveBack(void* data, void* pending) noexcept;
  void ForgetThoseWithNothing();

  const std::size_t limit_;
  std::shared_ptr<Count> all_ = std::make_shared<Count>(0);
  std::unordered_map<std::string, std::shared_ptr<Count>> peers_;
  std::size_t forget_at_ = 1024;  // entries
};

}  // namespace loopfleet::wire
