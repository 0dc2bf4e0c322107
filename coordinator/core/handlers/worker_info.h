#pragma once
// What people and programs are told of a worker.

#include "common/wire/message.h"
#include "coordinator/core/tables/worker_registry.h"

namespace loopfleet::coordinator {

wire::WorkerInfo WorkerInfoOf(const Worker& worker, Instant now);

}  // namespace loopfleet::coordinator
