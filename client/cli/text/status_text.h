#pragma once
// What a coordinator says of its fleet, as text and as JSON: `loopfleet status` and `events`, and
// the parts that `top` shows, too.

#include <cstdint>
#include <string>
#include <vector>

#include "client/outcome_json.h"
#include "common/base/clock.h"
#include "common/wire/message.h"

namespace loopfleet::client {

struct FleetReplies {
  wire::FleetInfo fleet;
  wire::WorkerList workers;
  wire::BatchList batches;  // the newest ones, newest first
};

std::string StatusText(const FleetReplies& replies);
Json StatusJson(const FleetReplies& replies);

// One line: time, kind, subject, text.
std::string EventText(const wire::FleetEvent& event);
Json EventJson(const wire::FleetEvent& event);

// What needs attention, the worst first, or that nothing does.
std::vector<std::string> HealthLines(const wire::FleetInfo& fleet);
std::string FailuresText(
    const wire::FleetInfo& fleet);                   // codes and counts, the most frequent first
std::uint64_t Queued(const wire::FleetInfo& fleet);  // jobs
std::string OldestText(
    const wire::FleetInfo& fleet);  // ", the oldest for 3 s"; empty if none waits
std::vector<wire::BatchInfo> Running(const wire::BatchList& list);
std::string AgeText(Nanos duration);  // "2 h 5 min"

}  // namespace loopfleet::client
