#include "coordinator/shell/read_queue.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/counted.h"

namespace loopfleet::coordinator {
namespace {

const Payer& PayerOf(const ReadQueue::Read& read) {
  return std::visit([](const auto& one) -> const Payer& { return one.payer; }, read);
}

}  // namespace

std::optional<Failure> ReadQueue::Add(Read read) {
  const Uuid client = PayerOf(read).client;
  if (queue_.size_of(client) >= limits_.max_reads_per_client) {
    return Failure{
        .code = FailureCode::kQuotaExceeded,
        .message = fmt::format("{} to be read for this client (the limit)",
                               Counted(limits_.max_reads_per_client, "page is", "pages are"))};
  }
  if (queue_.size() >= limits_.max_reads) {
    return Failure{.code = FailureCode::kBusy,
                   .message = fmt::format("{} to be read (the limit)",
                                          Counted(limits_.max_reads, "page is", "pages are"))};
  }
  queue_.Push(client, std::move(read));
  return std::nullopt;
}

ReadQueue::Read ReadQueue::Take() {
  auto [client, read] = queue_.Pop();
  queue_.Charge(client, 1);
  return std::move(read);
}

void ReadQueue::RemoveByKeys(const std::set<KeyText>& keys) {
  queue_.EraseIf([&](const Read& read) { return keys.contains(PayerOf(read).key); });
}

}  // namespace loopfleet::coordinator
