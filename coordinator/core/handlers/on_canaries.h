#pragma once
// Doubt: what follows when a worker's canaries drift, and which of its results that is about.

#include <string>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Of each heartbeat: the worker goes into quarantine, or is released.
void OnCanaries(Transaction& tx, Worker& worker, const wire::Heartbeat& heartbeat);

// A worker's latest measurements are in doubt until its canaries show that it was steady.
void RememberInDoubt(Transaction& tx, Worker& worker, Job job);

// A doubtful timing cannot be told from a good one by itself, so the result says so. Of grade C or
// D, a copied figure has no link to its original, which another worker may have measured: the doubt
// does not reach that one.
void PutInDoubt(Evaluation& evaluation, const std::string& doubt);

}  // namespace loopfleet::coordinator
