#pragma once
// Observed <-> a list of named values. The reader throws Refusal (frame.h).

#include "common/job/observed.h"
#include "schema/outcome.capnp.h"

namespace loopfleet::wire {

void WriteObservedValues(const Observed& observed,
                         capnp::List<schema::ObservedValue>::Builder list);
Observed ReadObservedValues(capnp::List<schema::ObservedValue>::Reader list);

}  // namespace loopfleet::wire
