#pragma once
// Workers and batches as JSON, with the same fields for `loopfleet worker list --json`, `batch list
// --json` and the page.

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
