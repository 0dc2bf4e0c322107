#pragma once
// Reads the figure that a search makes small from an outcome.

#include "client/search/candidate.h"
#include "common/job/outcome.h"

namespace loopfleet::client {

// The observations that a search over passes asks for: what it makes small, and what -Oz makes of
// the program. A coordinator accepts no verdict without them.
inline constexpr const char* kInstructions = "IrInstructionCount";
inline constexpr const char* kInstructionsOz = "IrInstructionCountOz";

// Nanoseconds of one run, or a program's instructions; kNoFigure: failed, cut, or of grade D.
double FigureOf(const Evaluation& evaluation);

// It says nothing about the schedule, and trying again may help: the host was too busy, or a worker
// was lost.
bool IsInconclusive(const Evaluation& evaluation);

}  // namespace loopfleet::client
