#pragma once
// MirrorModel: how far the copy of the outcomes in PostgreSQL is (coordinator/mirror/), and its
// JSON, which loopfleet-mirror prints and the coordinator reads.

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/job/outcome_json.h"

namespace loopfleet {

struct MirrorModel {
  std::uint64_t mirrored = 0;  // outcomes, since the mirror's start
  std::uint64_t waiting = 0;   // finished and not there yet, at least
  Nanos behind{0};             // age of the oldest of these, about; 0: none waits
  std::string trouble;         // why nothing is written there; "": it is
};

Json MirrorJson(const MirrorModel& mirror);
std::optional<MirrorModel> ParseMirror(const std::string& json);  // nullopt: it is no such line

}  // namespace loopfleet
