#pragma once
// Pruning: removes batches that finished long ago, with their requests, jobs, outcomes and known
// failures. Results stay and answer as before; what they were measured for (benchmark, actions)
// goes with the jobs. A known failure goes with the outcome that it refers to: an equal job is
// evaluated again. A repeat of a removed request is accepted as a new one.
//
// A pass visits the batches in short steps (Store::Prune). Each step is atomic on disk, together
// with the record that the database keeps of the pass, so a pass may end anywhere; the next one
// goes on in the middle of a batch. The batch's own row goes first, so no reader sees a part.
//
// Never removed: batches that are open or unfinished, damaged ones (to hide no damage), and the
// newest batch, because batch numbers continue after it. So a lower number without a batch was
// pruned, unless it was skipped after a restore.

#include <cstdint>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/job/ids.h"

namespace loopfleet::storage {

struct PruningRule {
  WallTime finished_before{};  // applies to batches whose last job finished before this
  std::string asked_by;        // the program, for people: "loopfleet db prune"
};

// Rows removed.
struct PruningCount {
  std::uint64_t batches = 0;
  std::uint64_t requests = 0;
  std::uint64_t jobs = 0;
  std::uint64_t outcomes = 0;
  std::uint64_t known_failures = 0;
  std::uint64_t damaged = 0;  // batches left because their row, or their last outcome's, is damaged
};

// A pass. Store::Prune advances it.
class Pruning {
 public:
  explicit Pruning(PruningRule rule) : rule_(std::move(rule)) {}

  const PruningRule& rule() const { return rule_; }
  const PruningCount& count() const { return progress_.count; }
  bool is_over() const { return progress_.phase == Phase::kOver; }
  std::int64_t id() const { return progress_.id; }

  enum class Phase : std::uint8_t { kNew, kRemoving, kShrinking, kOver };
  // What an engine has done, and how far it came. It examines batches in the order of their
  // numbers.
  struct Progress {
    PruningCount count;
    Phase phase = Phase::kNew;
    std::int64_t id = 0;  // of the database's record of it; 0: nothing removed yet
    WallTime begun_at{};
    BatchId seen;      // the last batch examined
    BatchId removing;  // its rows are being removed; 0: none
    std::uint32_t too_new_in_row = 0;
  };
  Progress& progress() { return progress_; }
  const Progress& progress() const { return progress_; }

 private:
  PruningRule rule_;
  Progress progress_;
};

}  // namespace loopfleet::storage
