#pragma once
// The state of a worker, as commands print it.

#include <string_view>

#include "common/wire/message.h"

namespace loopfleet::client {

inline std::string_view WorkerStateName(wire::WorkerState state) {
  switch (state) {
    case wire::WorkerState::kReady: return "ready";
    case wire::WorkerState::kDraining: return "draining";
    case wire::WorkerState::kLost: return "lost";
    case wire::WorkerState::kQuarantined: return "quarantined";
  }
  return "";
}

}  // namespace loopfleet::client
