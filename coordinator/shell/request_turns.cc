#include "coordinator/shell/request_turns.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"

namespace loopfleet::coordinator {
namespace {

// With what a request takes beside its frame, about: many small ones are memory, too.
std::size_t MemoryBytesOf(const wire::Received& request) {
  constexpr std::size_t kBesideTheFrame = 256;
  return request.frame.size() + kBesideTheFrame;
}

}  // namespace

std::optional<Failure> RequestTurns::Add(const Uuid& client, wire::Received& request) {
  const std::size_t bytes = MemoryBytesOf(request);
  Client& mine = clients_[client];
  if (mine.waiting.empty()) {
    mine.used = std::max(mine.used, least_used_);
    turns_.emplace(mine.used, client);
  } else if (mine.bytes + bytes > (max_bytes_ - std::min(bytes_, max_bytes_)) / 4) {
    return Failure{
        .code = FailureCode::kQuotaExceeded,
        .message = fmt::format("{} bytes of this client's requests wait to be looked at, which is "
                               "a quarter of what is free for all",
                               mine.bytes)};
  }
  mine.waiting.push_back(std::move(request));
  mine.bytes += bytes;
  bytes_ += bytes;
  return std::nullopt;
}

std::pair<Uuid, wire::Received> RequestTurns::Take() {
  LF_CHECK(!turns_.empty(), "nobody waits for a turn");
  const auto [used, client] = *turns_.begin();
  turns_.erase(turns_.begin());
  least_used_ = used;
  Client& mine = clients_.at(client);
  wire::Received request = std::move(mine.waiting.front());
  mine.waiting.pop_front();
  const std::size_t bytes = MemoryBytesOf(request);
  mine.bytes -= bytes;
  bytes_ -= bytes;
  return {client, std::move(request)};
}

void RequestTurns::Charge(const Uuid& client, Nanos time) {
  Client& mine = clients_.at(client);
  mine.used += time;
  if (!mine.waiting.empty()) turns_.emplace(mine.used, client);
  if (clients_.size() >= forget_at_) ForgetThoseWhoWereServed();
}

void RequestTurns::ForgetThoseWhoWereServed() {
  std::erase_if(clients_, [&](const auto& entry) {
    return entry.second.waiting.empty() && (turns_.empty() || entry.second.used <= least_used_);
  });
  forget_at_ = std::max<std::size_t>(1024, 2 * clients_.size());
}

void RequestTurns::Revoke(const std::set<KeyText>& keys) {
  for (auto& [id, client] : clients_) {
    for (wire::Received& request : client.waiting) {
      if (!keys.contains(request.sender.key)) continue;
      request.sender = {.standing = wire::Sender::Standing::kRevoked};
    }
  }
}

}  // namespace loopfleet::coordinator
