#pragma once
// SampleRetention: takes the raw samples of old results away, as --keep-samples-days says, a short
// step at a time: back to back while there is nothing to write, one a second while there is. Each
// pass is on record in the database (storage/sqlite/maintenance/thinning.h) and in the log. The
// storage thread's own.

#include <chrono>
#include <optional>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "storage/sqlite/maintenance/thinning.h"
#include "storage/store.h"

namespace loopfleet::coordinator {

class SampleRetention {
 public:
  // The storage thread has been idle for so long before it makes a step.
  static constexpr auto kIdle = std::chrono::milliseconds(50);
  static constexpr auto kBusyPause = std::chrono::seconds(1);   // between steps while it is not
  static constexpr auto kPassPause = std::chrono::minutes(10);  // from one pass to the next

  // `keep`: how long samples are kept; zero: for ever, then this does nothing.
  SampleRetention(storage::Store& store, const Clock& clock, std::chrono::days keep)
      : store_(store), clock_(clock), keep_(keep) {}

  bool is_on() const { return keep_ > std::chrono::days(0); }
  // When the next step may be made, of a thread with nothing else to do.
  Instant due() const { return due_; }
  // Whether a thread that is busy should make one.
  bool IsDueWhileBusy() const;
  // A few milliseconds. An error changes nothing (storage::Store::Thin), and is tried again later.
  Status Step();

 private:
  storage::Store& store_;
  const Clock& clock_;
  const std::chrono::days keep_;
  std::optional<storage::Thinning> pass_;  // under way
  Instant due_{};                          // at once
  Instant last_step_{};
};

}  // namespace loopfleet::coordinator
