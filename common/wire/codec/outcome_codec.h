#pragma once
// Internal to the codec. Outcomes of one batch as columns: schema/outcome.capnp. Readers throw
// Refusal (frame.h).

#include <span>
#include <vector>

#include "common/job/outcome.h"
#include "common/wire/codec/outcome_columns.h"
#include "schema/outcome.capnp.h"

namespace loopfleet::wire {

// All outcomes are of one batch; at most kMaxOutcomesPerPage.
void WriteOutcomes(std::span<const Outcome> outcomes, schema::OutcomeColumns::Builder builder);
OutcomeColumns ReadOutcomeColumns(BatchId batch, schema::OutcomeColumns::Reader reader);
std::vector<Outcome> ReadOutcomes(BatchId batch, schema::OutcomeColumns::Reader reader);

}  // namespace loopfleet::wire
