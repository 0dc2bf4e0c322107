#pragma once
// A job's explanation as text and as JSON.

#include <string>

#include "client/outcome_json.h"
#include "common/wire/message.h"

namespace loopfleet::client {

std::string ExplanationText(const wire::JobExplanation& explanation);
Json ExplanationJson(const wire::JobExplanation& explanation);

// "queued", "leased", "finished"
std::string_view JobStateName(wire::JobState state);

}  // namespace loopfleet::client
