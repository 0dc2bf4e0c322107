#include "coordinator/shell/read_turns.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {
namespace {

const Payer& PayerOf(const ReadTurns::Read& read) {
  return std::visit([](const auto& one) -> const Payer& { return one.payer; }, read);
}

}  // namespace

std::optional<Failure> ReadTurns::Add(Read read) {
  const Uuid client = PayerOf(read).client;
  const auto known = waiting_.find(client);
  if (known != waiting_.end() && known->second.size() >= limits_.max_reads_per_client) {
    return Failure{
        .code = FailureCode::kQuotaExceeded,
        .message = fmt::format("{} pages are to be read for this client, that is the most",
                               limits_.max_reads_per_client)};
  }
  if (size_ >= limits_.max_reads) {
    return Failure{
        .code = FailureCode::kBusy,
        .message = fmt::format("{} pages are to be read, that is the most", limits_.max_reads)};
  }
  if (known == waiting_.end()) turns_.push_back(client);
  waiting_[client].push_back(std::move(read));
  ++size_;
  return std::nullopt;
}

ReadTurns::Read ReadTurns::Take() {
  LF_CHECK(!turns_.empty(), "nobody waits for a page");
  const Uuid client = turns_.front();
  turns_.pop_front();
  const auto waiting = waiting_.find(client);
  Read read = std::move(waiting->second.front());
  waiting->second.pop_front();
  --size_;
  if (waiting->second.empty()) {
    waiting_.erase(waiting);
  } else {
    turns_.push_back(client);
  }
  return read;
}

void ReadTurns::RemoveThoseWith(const std::set<KeyText>& keys) {
  for (auto& [client, reads] : waiting_) {
    size_ -=
        std::erase_if(reads, [&](const Read& read) { return keys.contains(PayerOf(read).key); });
  }
  std::erase_if(waiting_, [](const auto& entry) { return entry.second.empty(); });
  std::erase_if(turns_, [&](const Uuid& client) { return !waiting_.contains(client); });
}

}  // namespace loopfleet::coordinator
