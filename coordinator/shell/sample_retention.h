#pragma once
// SampleRetention: deletes the raw samples of old results, as --keep-samples-days sets, in short
// steps: back to back while there is nothing to write, otherwise one a second. Each pass is
// recorded in the database (storage/sqlite/maintenance/thinning.h) and in the log. `loopfleet db
// thin` does the same at once; for both, ResultTable::Thin (storage/sqlite/tables/result_table.h)
// removes the samples. Belongs to the storage thread.

#include <chrono>
#include <optional>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "storage/sqlite/maintenance/thinning.h"
#include "storage/store.h"

namespace loopfleet::coordinator {

class SampleRetention {
 public:
  // How long the storage thread is idle before it makes a step.
  static constexpr auto kIdle = std::chrono::milliseconds(50);
  static constexpr auto kBusyPause = std::chrono::seconds(1);   // between steps while it is busy
  static constexpr auto kPassPause = std::chrono::minutes(10);  // from one pass to the next

  // `keep`: how long samples are kept; 0: unlimited, and this class does nothing.
  SampleRetention(storage::Store& store, const Clock& clock, std::chrono::days keep)
      : store_(store), clock_(clock), keep_(keep) {}

  bool is_on() const { return keep_ > std::chrono::days(0); }
  // When the idle storage thread may make the next step.
  Instant due() const { return due_; }
  // Whether the busy storage thread should make a step.
  bool IsDueWhileBusy() const;
  // Takes a few milliseconds. On an error nothing is changed (storage::Store::Thin), and the step
  // is repeated later.
  Status Step();

 private:
  storage::Store& store_;
  const Clock& clock_;
  const std::chrono::days keep_;
  std::optional<storage::Thinning> pass_;  // in progress
  Instant due_{};                          // the first step is due at once
  Instant last_step_{};
};

}  // namespace loopfleet::coordinator
