#pragma once
// Decides whether known failures of a tree answer an equal job without running it again. A broken
// host fails what others can measure, so one host's verdict does not answer for its class.

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/job/failure.h"
#include "storage/record.h"

namespace loopfleet::storage {

// Of a failure that is circumstantial (FailurePolicy), and of any other.
inline constexpr std::chrono::hours kCircumstantialAge{24};
inline constexpr std::chrono::hours kOneHostsVerdictAge{1};
inline constexpr std::size_t kEnoughHosts = 3;

// The workers that could get a job.
using Candidates = std::function<std::vector<Witness>()>;
struct Verdict {
  Witness witness;
  WallTime given_at{};
};
// Whether these verdicts on one tree, all of this code, answer a job at `now`:
// - CUT: yes, as a figure would.
// - If it is circumstantial: if each candidate gave it within kCircumstantialAge, or
//   kEnoughHosts did: in a large fleet, no job waits until the last worker has tried.
// - Any other: if two hosts gave it, or if the host of each candidate gave it within
//   kOneHostsVerdictAge.
// Without a candidate only a CUT and the verdict of two hosts do. `candidates` is called only if
// they matter; null: there is none.
bool Settles(FailureCode code, std::span<const Verdict> verdicts, const Candidates& candidates,
             WallTime now);

}  // namespace loopfleet::storage
