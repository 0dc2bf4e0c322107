#pragma once
// Thinning: retention of raw samples. Removes the samples of old results, all or all but every
// N-th. What was computed from them (median, interval, grade, provenance, number of samples) stays.
// A pass visits the results in short steps (Store::Thin). Each step is atomic on disk, together
// with the record that the database keeps of the pass, so a pass may end anywhere.
//
// A damaged result is skipped and stays as it is. A result with no more samples than the rule keeps
// is not changed: a rule may be applied any number of times.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/job/measurement.h"

namespace loopfleet::storage {

struct ThinningRule {
  WallTime measured_before{};    // applies to results measured before this
  std::uint32_t keep_every = 0;  // keeps one of this many samples; 0: none
  std::string asked_by;          // the program, for people: "loopfleet db thin"
};

// How many of a result's samples the rule keeps.
inline std::uint32_t SamplesLeft(const ThinningRule& rule, std::uint32_t samples_before) {
  if (rule.keep_every == 0) return 0;
  return samples_before / rule.keep_every + (samples_before % rule.keep_every == 0 ? 0 : 1);
}
// Applies the rule to an old result, and returns how many samples went.
std::size_t RemoveSamples(const ThinningRule& rule, Measurement& measurement);

struct ThinningCount {
  std::uint64_t results = 0;  // that lost samples
  std::uint64_t samples = 0;  // removed
  std::uint64_t bytes = 0;    // of the removed samples
  std::uint64_t damaged = 0;  // results skipped
};

// A pass. Store::Thin advances it.
class Thinning {
 public:
  enum class Scope {
    kAll,  // every result
    kNew,  // results after those that a pass at least as strict has covered, until they are too
           // new; for passes that repeat
  };
  Thinning(ThinningRule rule, Scope scope) : rule_(std::move(rule)), scope_(scope) {}

  const ThinningRule& rule() const { return rule_; }
  Scope scope() const { return scope_; }
  const ThinningCount& count() const { return progress_.count; }
  bool is_over() const { return progress_.is_over; }
  std::int64_t id() const { return progress_.id; }

  // What an engine has done, and how far it came. It examines results in the order of their
  // numbers.
  struct Progress {
    ThinningCount count;
    bool is_over = false;
    std::int64_t id = 0;               // of the database's record of it; 0: nothing changed yet
    std::optional<WallTime> begun_at;  // none: not yet
    std::int64_t seen = 0;             // the last result examined
    std::int64_t through = 0;          // the last old result examined
    std::uint32_t too_new_in_row = 0;
  };
  Progress& progress() { return progress_; }
  const Progress& progress() const { return progress_; }

 private:
  ThinningRule rule_;
  Scope scope_;
  Progress progress_;
};

}  // namespace loopfleet::storage
