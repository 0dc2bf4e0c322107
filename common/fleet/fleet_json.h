#pragma once
// Workers, batches and what needs attention as JSON, with the same fields for the command's --json,
// the page and /healthz.

#include <array>
#include <string_view>
#include <vector>

#include "common/job/outcome_json.h"
#include "common/wire/message.h"

namespace loopfleet {

inline constexpr std::array kWorkerStates = {wire::WorkerState::kReady,
                                             wire::WorkerState::kDraining, wire::WorkerState::kLost,
                                             wire::WorkerState::kQuarantined};
std::string_view WorkerStateName(wire::WorkerState state);  // "ready"
std::string_view BatchStateName(wire::BatchState state);    // "open"

Json AttentionJson(const std::vector<wire::Attention>& attention);
Json DrainJson(const wire::Drain& drain);
Json WorkerJson(const wire::WorkerInfo& info);
Json BatchJson(const wire::BatchInfo& info);

}  // namespace loopfleet
