#pragma once
// Conditions <-> row of `conditions`.

#include <string>

#include "common/job/outcome.h"
#include "common/job/outcome_json.h"

namespace loopfleet::storage {

// Every fact, as outcomes show it, and what they leave out.
Json FactsJson(const HardwareFacts& facts);
// What a row of an earlier version leaves out is 0. `json` is one of FactsJson; anything else is
// read as far as it can be.
HardwareFacts FactsOf(DeviceKind device, const Json& json);

// "general cpu-8".
std::string LoweringText(const CompilerFacts& compiler);

}  // namespace loopfleet::storage
