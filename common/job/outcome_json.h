#pragma once
// Outcomes as JSON, field by field as `loopfleet eval --json` and the page show them. A failed job
// has null where a figure would be: never 0.

#include <nlohmann/json.hpp>

#include <string>

#include "common/job/outcome.h"

namespace loopfleet {

// Ordered, so that people find the fields where the documents show them.
using Json = nlohmann::ordered_json;

Json OutcomeJson(const Outcome& outcome);
Json FailureJson(const Failure& failure);
Json HardwareJson(const HardwareFacts& facts);

// One line. Bytes that are not UTF-8 are replaced, never an exception.
std::string Dump(const Json& json);

}  // namespace loopfleet
