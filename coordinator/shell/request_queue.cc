#include "coordinator/shell/request_queue.h"

#include <fmt/format.h>

#include <algorithm>

namespace loopfleet::coordinator {
namespace {

// The frame and the approximate overhead of an entry, which counts when requests are small.
std::size_t MemoryBytesOf(const wire::Received& request) {
  constexpr std::size_t kBesideTheFrame = 256;
  return request.frame.size() + kBesideTheFrame;
}

}  // namespace

std::optional<Failure> RequestQueue::Add(const Uuid& client, wire::Received& request) {
  const std::size_t bytes = MemoryBytesOf(request);
  const std::size_t free = max_bytes_ - std::min(queue_.bytes(), max_bytes_);
  if (queue_.size_of(client) > 0 && queue_.bytes_of(client) + bytes > free / 4) {
    return Failure{
        .code = FailureCode::kQuotaExceeded,
        .message = fmt::format("{} bytes of this client's requests wait to be looked at, which is "
                               "a quarter of what is free for all",
                               queue_.bytes_of(client))};
  }
  queue_.Push(client, {.received = std::move(request), .bytes = bytes, .admission = nullptr},
              bytes);
  return std::nullopt;
}

std::pair<Uuid, QueuedRequest> RequestQueue::Take() {
  auto taken = queue_.PopFirst([&](const QueuedRequest& request) {
    const bool has_room = begun_ < kMaxBegun && queue_.bytes() < max_bytes_;
    return request.admission != nullptr || request.bytes <= kSmallBytes || has_room;
  });
  if (taken.second.admission != nullptr) --begun_;
  return taken;
}

void RequestQueue::PutBack(const Uuid& client, QueuedRequest request) {
  if (request.admission != nullptr) {
    ++begun_;
    request.bytes = std::max(request.bytes, request.admission->bytes());
  }
  const std::size_t bytes = request.bytes;
  queue_.PutBack(client, std::move(request), bytes);
}

void RequestQueue::Revoke(const std::set<KeyText>& keys) {
  queue_.ForEach([&](QueuedRequest& request) {
    wire::Sender& sender = request.received.sender;
    if (!keys.contains(sender.key)) return;
    sender = {.standing = wire::Sender::Standing::kRevoked};
  });
}

}  // namespace loopfleet::coordinator
