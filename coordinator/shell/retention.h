#pragma once
// Retention: deletes the raw samples of old results, as --keep-samples-days sets, and old batches,
// as --keep-batches-days sets, in short steps: back to back while there is nothing to write,
// otherwise ten a second. Each pass is recorded in the database (storage/sqlite/maintenance/
// thinning.h, pruning.h) and in the log. `loopfleet db thin` and `loopfleet db prune` do the same
// at once. Belongs to the storage thread.

#include <chrono>
#include <functional>
#include <optional>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "storage/pruning.h"
#include "storage/store.h"
#include "storage/thinning.h"

namespace loopfleet::coordinator {

// How long something is kept; 0: unlimited.
struct Keep {
  std::chrono::days samples{0};
  std::chrono::days batches{0};
  // Whether old batches may be deleted now: they are copied elsewhere, as far as they have to be.
  // Asked before each step. Any thread; null: always.
  std::function<bool()> may_delete_batches;
};

class Retention {
 public:
  // How long the storage thread is idle before it makes a step.
  static constexpr auto kIdle = std::chrono::milliseconds(50);
  // Between steps while it is busy. A slower pace would remove less than a busy fleet adds.
  static constexpr auto kBusyPause = std::chrono::milliseconds(100);
  static constexpr auto kPassPause = std::chrono::minutes(10);  // from one round to the next
  static constexpr auto kHeldPause = std::chrono::seconds(5);   // while nothing may be deleted

  Retention(storage::Store& store, const Clock& clock, const Keep& keep)
      : store_(store), clock_(clock), keep_(keep) {}

  bool is_on() const { return keep_.samples.count() > 0 || keep_.batches.count() > 0; }
  // When the idle storage thread may make the next step.
  Instant due() const { return due_; }
  // Whether the busy storage thread should make a step.
  bool IsDueWhileBusy() const;
  // Takes a few milliseconds. On an error nothing is changed (storage::Store::Thin). The step is
  // repeated later; kCorrupt ends the pass.
  Status Step();

 private:
  bool MayDeleteBatches() const { return !keep_.may_delete_batches || keep_.may_delete_batches(); }
  void Begin();
  void Report(const storage::Thinning& pass);
  void Report(const storage::Pruning& pass);

  storage::Store& store_;
  const Clock& clock_;
  const Keep keep_;
  // The passes of a round that are not over, one after the other.
  std::optional<storage::Thinning> thinning_;
  std::optional<storage::Pruning> pruning_;
  Instant due_{};  // the first step is due at once
  Instant last_step_{};
};

}  // namespace loopfleet::coordinator
