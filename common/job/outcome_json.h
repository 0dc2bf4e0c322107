#pragma once
// Outcomes as JSON, as `loopfleet eval --json` and the page show them. The figures of a failed job
// are null, never 0.

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "common/job/outcome.h"

namespace loopfleet {

// Ordered, so that the fields appear in the order that the documents show.
using Json = nlohmann::ordered_json;

Json OutcomeJson(const Outcome& outcome);
Json FailureJson(const Failure& failure);
Json ObservedJson(const Observed& observed);  // by name
Json HardwareJson(const HardwareFacts& facts);
// Adds "no_effect" and "effects": Evaluation::notes, those followed in part apart.
void AddNotes(const std::vector<std::string>& notes, Json& json);

// One line. Replaces bytes that are not UTF-8 instead of throwing.
std::string Dump(const Json& json);

}  // namespace loopfleet
