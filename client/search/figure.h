#pragma once
// What an outcome says to a search.

#include "client/search/candidate.h"
#include "common/job/outcome.h"

namespace loopfleet::client {

// Nanoseconds of one run; kNoFigure: failed, cut, or of grade D.
double FigureOf(const Evaluation& evaluation);

// It says nothing about the schedule, and trying again may help: the host was too busy, or a worker
// was lost.
bool IsInconclusive(const Evaluation& evaluation);

}  // namespace loopfleet::client
