#pragma once
// ReadQueue: pages of outcomes still to be read and encoded, which takes the event loop
// milliseconds each. Clients get an equal share of pages (fair_queue.h). Bounded in pages. Belongs
// to the event loop.

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
    // Beyond: QUOTA_EXCEEDED. Twice the long polls of one client.
    std::size_t max_reads_per_client = 4'000;
  };
  ReadQueue() = default;
  explicit ReadQueue(const Limits& limits) : limits_(limits) {}

  // Returns why there is no room; nullopt: added.
  std::optional<Failure> Add(Read read);
  Read Take();  // must not be empty
  void RemoveByKeys(const std::set<KeyText>& keys);
  bool empty() const { return queue_.empty(); }

 private:
  Limits limits_;
  FairQueue<Read> queue_;
};

}  // namespace loopfleet::coordinator
