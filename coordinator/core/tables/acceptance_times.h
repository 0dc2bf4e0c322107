#pragma once
// AcceptanceTimes: when the queued jobs were accepted. Says how long the oldest has waited, however
// many jobs wait with whatever demands.
//
// Invariant: holds the acceptance time of each job of the ReadyQueue, and no other. Jobs of one
// message share one, so there are far fewer times than jobs.

#include <cstddef>
#include <map>
#include <optional>

#include "common/base/check.h"
#include "common/base/clock.h"

namespace loopfleet::coordinator {

class AcceptanceTimes {
 public:
  void Add(Instant accepted_at) {
    ++jobs_.try_emplace(jobs_.end(), accepted_at, 0)->second;  // most jobs are the latest
  }
  void Remove(Instant accepted_at) {
    const auto time = jobs_.find(accepted_at);
    LF_CHECK(time != jobs_.end(), "no queued job was accepted then");
    if (--time->second == 0) jobs_.erase(time);
  }
  // Nullopt if no job is queued.
  std::optional<Instant> Oldest() const {
    return jobs_.empty() ? std::nullopt : std::optional(jobs_.begin()->first);
  }

  friend bool operator==(const AcceptanceTimes&, const AcceptanceTimes&) = default;

 private:
  std::map<Instant, std::size_t> jobs_;  // how many were accepted then
};

}  // namespace loopfleet::coordinator
