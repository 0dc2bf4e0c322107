#pragma once
// EventTimes: how long the coordinator's events and its database's commits took in an interval,
// from the histograms on its /metrics. A figure is the upper end of a bucket.

#include <map>
#include <string>

#include "common/base/result.h"

namespace loopfleet::bench {

struct Tail {
  double p999_ms = 0;
  double longest_ms = 0;
  std::string longest_kind;  // of an event
};

class EventTimes {
 public:
  // Begins the interval. `address`: the coordinator's HTTP listener.
  static Result<EventTimes> Begin(const std::string& address);

  // Since then. Reads /metrics.
  Result<Tail> Events() const { return TailOf("loopfleet_event_seconds"); }
  Result<Tail> Commits() const { return TailOf("loopfleet_store_commit_duration_seconds"); }

 private:
  using Series = std::map<std::string, double>;
  EventTimes(std::string address, Series before)
      : address_(std::move(address)), before_(std::move(before)) {}
  Result<Tail> TailOf(const std::string& histogram) const;

  std::string address_;
  Series before_;
};

}  // namespace loopfleet::bench
