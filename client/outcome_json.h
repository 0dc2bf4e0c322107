#pragma once
// Outcomes as JSON, field by field as DESIGN's `eval --json` shows them. A failed job has null
// where a figure would be: never 0.

#include <nlohmann/json.hpp>

#include <string>

#include "client/job_line.h"
#include "common/job/outcome.h"

namespace loopfleet::client {

// Ordered, so that people find the fields where the documents show them.
using Json = nlohmann::ordered_json;

Json OutcomeJson(const Outcome& outcome);
// The outcome of a job that was refused before it was sent.
Json OutcomeJson(const RejectedJob& rejected);
Json FailureJson(const Failure& failure);
Json HardwareJson(const HardwareFacts& facts);

// One line. Bytes that are not UTF-8 are replaced, never an exception.
std::string Dump(const Json& json);

}  // namespace loopfleet::client
