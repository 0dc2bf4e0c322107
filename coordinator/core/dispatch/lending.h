#pragma once
// Lending: a job waits for workers that are in quarantine as long as one may come back. Where
// everybody who could run it has been drifting for longer than Limits::drift_patience, it is lent
// to one of them all the same, so that nobody waits for ever: what comes of it is of grade C, and
// in doubt from the beginning (it answers nobody later).

#include <string>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Looks who drifts for so long. Once a tick.
void FindLent(Turn& turn);
// Gives them what is left to them. After everybody who is ready got what it takes.
void GrantLent(Turn& turn);
// Whether the worker may have a job that demands this: it is ready, or it is lent such jobs now.
bool MayHave(const Turn& turn, const Worker& worker, const Demand& demand);
// Why a figure that the worker has of this lease is in doubt; "": the job was not lent.
std::string DoubtOf(const Worker& worker, LeaseId lease);

}  // namespace loopfleet::coordinator
