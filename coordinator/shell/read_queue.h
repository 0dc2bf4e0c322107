#pragma once
// ReadQueue: pages of outcomes to be read and encoded, which takes the event loop milliseconds
// each. Clients share the pages (fair_queue.h). Bounded in pages. Belongs to the event loop.

#include <cstddef>
#include <optional>
#include <set>
#include <variant>

#include "common/job/failure.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/shell/fair_queue.h"

namespace loopfleet::coordinator {

class ReadQueue {
 public:
  using Read = std::variant<SendOutcomes, AnswerFromStorage>;
  struct Limits {
    std::size_t max_reads = 20'000;  // beyond: BUSY
    std::size_t max_reads_per_client =
        4'000;  // beyond: QUOTA_EXCEEDED; twice the long polls of one
  };
  ReadQueue() = default;
  explicit ReadQueue(const Limits& limits) : limits_(limits) {}

  // Why there is no room for it, if there is none.
  std::optional<Failure> Add(Read read);
  Read Take();  // not while empty
  void RemoveThoseWith(const std::set<KeyText>& keys);
  bool empty() const { return queue_.empty(); }

 private:
  Limits limits_;
  FairQueue<Read> queue_;
};

}  // namespace loopfleet::coordinator
