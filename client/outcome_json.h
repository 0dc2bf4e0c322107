#pragma once
// Outcomes as JSON: those of common/job/outcome_json.h, and those of jobs rejected before sending.

#include "client/job_line.h"
#include "common/job/outcome_json.h"

namespace loopfleet::client {

using loopfleet::Dump;
using loopfleet::FailureJson;
using loopfleet::HardwareJson;
using loopfleet::Json;
using loopfleet::OutcomeJson;

// The outcome of a job that was rejected before it was sent.
Json OutcomeJson(const RejectedJob& rejected);

}  // namespace loopfleet::client
