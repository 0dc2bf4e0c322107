#pragma once
// Internal to the codec. Evaluations as columns: schema/outcome.capnp. Readers throw Refusal
// (frame.h).

#include <span>
#include <vector>

#include "common/job/outcome.h"
#include "common/wire/codec/outcome_columns.h"
#include "schema/outcome.capnp.h"

namespace loopfleet::wire {

// At most kMaxOutcomesPerPage.
void WriteEvaluations(std::span<const Evaluation* const> evaluations,
                      schema::EvaluationColumns::Builder builder);
EvaluationColumns ReadEvaluationColumns(schema::EvaluationColumns::Reader reader);
std::vector<Evaluation> ReadEvaluations(schema::EvaluationColumns::Reader reader);

}  // namespace loopfleet::wire
