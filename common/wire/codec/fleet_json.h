#pragma once
// What the fleet consists of, as JSON: `loopfleet worker list --json`, `batch list --json`, and the
// page, which show the same fields.

#include <string_view>

#include "common/job/outcome_json.h"
#include "common/wire/message.h"

namespace loopfleet::wire {

std::string_view WorkerStateName(WorkerState state);  // "ready"
std::string_view BatchStateName(BatchState state);    // "open"

Json DrainJson(const Drain& drain);
Json WorkerJson(const WorkerInfo& info);
Json BatchJson(const BatchInfo& info);

}  // namespace loopfleet::wire
