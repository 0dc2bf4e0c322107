#pragma once
// Messages as one line of a trace, and texts and numbers that identify their content.

#include <cstdint>
#include <string>

#include "common/wire/message.h"

namespace loopfleet::simulation {

std::string TextOf(const wire::ClientMessage& message);
std::string TextOf(const wire::CoordinatorMessage& message);
std::string TextOf(const wire::WorkerMessage& message);
std::string TextOf(const wire::WorkerCommand& command);

// Everything in a submission except its request id.
std::string ContentText(const wire::SubmitJobs& submit);

// Unique to each simulated report.
double FingerprintOf(const Evaluation& evaluation);

}  // namespace loopfleet::simulation
