#pragma once
// The view of a worker that is shown to clients.

#include "common/wire/message.h"
#include "coordinator/core/tables/worker_registry.h"

namespace loopfleet::coordinator {

wire::WorkerInfo WorkerInfoOf(const Worker& worker, Instant now);
// What HealthOf() looks at, and nothing else: a fleet of many workers is asked for often.
wire::WorkerInfo WorkerHealthOf(const Worker& worker);

}  // namespace loopfleet::coordinator
