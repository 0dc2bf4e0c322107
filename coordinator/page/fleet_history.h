#pragma once
// FleetHistory: the last 15 minutes in steps of 5 seconds: jobs ended, each worker's canary ratios,
// and the rate of each batch. Built from snapshots. Not synchronised: the owner locks it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "coordinator/shell/fleet_snapshot.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

class FleetHistory {
 public:
  static constexpr std::chrono::seconds kStep{5};
  static constexpr std::size_t kSteps = 180;
  static constexpr std::size_t kMaxWorkers = 1024;  // whose canaries are kept
  // Window of a rate: long enough to be steady, short enough to show a stop.
  static constexpr std::chrono::seconds kRateSpan{20};

  // Jobs that ended in one step.
  struct Step {
    std::uint64_t finished = 0;
    std::uint64_t failed = 0;
  };
  struct Canary {
    WallTime at{};
    double ratio = 0;
  };

  void Add(const FleetSnapshot& snapshot, const std::vector<storage::StoredBatch>& batches);

  // Complete steps, oldest first, and the end of the last one.
  const std::deque<Step>& steps() const { return steps_; }
  WallTime steps_end() const { return steps_end_; }
  Step Last(std::size_t count) const;  // the sum of the last steps

  double JobsPerSecond() const;  // over kRateSpan
  // Of one batch; nullopt while unknown.
  std::optional<double> JobsPerSecond(BatchId batch) const;
  const std::deque<Canary>& CanariesOf(const Uuid& worker) const;

 private:
  struct Mark {
    Instant at{};
    std::uint64_t finished = 0;
  };
  static void Push(std::deque<Mark>& marks, Mark mark);
  static std::optional<double> RateOf(const std::deque<Mark>& marks);
  void AddCanaries(const FleetSnapshot& snapshot);

  std::deque<Step> steps_;
  WallTime steps_end_{};
  struct StepBegin {
    Instant at{};
    Tally tally;
  };
  std::optional<StepBegin> step_began_;
  Instant canaries_at_{};
  std::deque<Mark> marks_;
  std::map<BatchId, std::deque<Mark>> batch_marks_;  // of the batches shown
  std::map<Uuid, std::deque<Canary>> canaries_;
};

}  // namespace loopfleet::coordinator
