#pragma once
// FleetHistory: each worker's canary ratios over the last 15 minutes in steps of 5 seconds, the
// rate of each batch, and the names of clients. Built from snapshots. Not synchronised: the owner
// locks it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "coordinator/shell/fleet_snapshot.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

class FleetHistory {
 public:
  static constexpr std::size_t kMaxWorkers = 1024;  // whose canaries are kept
  // Window of a rate: long enough to be steady, short enough to show a stop.
  static constexpr std::chrono::seconds kRateSpan{20};

  struct Canary {
    WallTime at{};
    double ratio = 0;
  };

  void Add(const FleetSnapshot& snapshot, const std::vector<storage::StoredBatch>& batches);

  double JobsPerSecond() const;  // over kRateSpan
  // Of one batch; nullopt while unknown.
  std::optional<double> JobsPerSecond(BatchId batch) const;
  const std::deque<Canary>& CanariesOf(const Uuid& worker) const;
  // For people: the name of its key; "coordinator"; without keys the beginning of its id.
  std::string NameOf(const Uuid& client) const;

 private:
  struct Mark {
    Instant at{};
    std::uint64_t finished = 0;
  };
  static void Push(std::deque<Mark>& marks, Mark mark);
  static std::optional<double> RateOf(const std::deque<Mark>& marks);
  void AddCanaries(const FleetSnapshot& snapshot);

  Instant canaries_at_{};
  std::deque<Mark> marks_;
  std::map<BatchId, std::deque<Mark>> batch_marks_;  // of the batches shown
  std::map<Uuid, std::deque<Canary>> canaries_;
  std::shared_ptr<const ClientNames> client_names_;  // null: no keys
};

}  // namespace loopfleet::coordinator
