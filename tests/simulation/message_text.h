#pragma once
// Messages as one line of a trace, and what tells two of them apart.

#include <cstdint>
#include <string>

#include "common/wire/message.h"

namespace loopfleet::simulation {

std::string TextOf(const wire::ClientMessage& message);
std::string TextOf(const wire::CoordinatorMessage& message);
std::string TextOf(const wire::WorkerMessage& message);
std::string TextOf(const wire::WorkerCommand& command);

// All that a submission says, but for its id.
std::string ContentText(const wire::SubmitJobs& submit);

// Every report of a run is made so that no other one has its fingerprint.
double FingerprintOf(const Evaluation& evaluation);

}  // namespace loopfleet::simulation
