#pragma once
// Winners that were measured again (client/confirmation.h) as a table and as JSON.

#include <string>
#include <vector>

#include "client/confirmation.h"
#include "client/outcome_json.h"

namespace loopfleet::client {

// One row a winner: benchmark, GFLOP/s at first and confirmed, how much the first was too good,
// actions. "no figure": none of its new measurements succeeded.
std::string ConfirmedText(const std::vector<Confirmed>& confirmed);
// [{"job", "benchmark", "actions", "elapsed_ns", "confirmed_ns", "bias", "remeasured_ns"}], the
// fifth and sixth null where the table says "no figure".
Json ConfirmedJson(const std::vector<Confirmed>& confirmed);

}  // namespace loopfleet::client
