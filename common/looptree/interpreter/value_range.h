#pragma once
// ValueRange: what is known of all elements of a node's result before any of them is computed:
// above all, whether float32 can round on the way there.

#include <span>
#include <vector>

#include "common/looptree/program/program.h"
#include "common/looptree/program/program_facts.h"

namespace loopfleet::looptree {

struct ValueRange {
  bool exact = false;  // no rounding on the way here, in whatever order
  bool integer = false;
  double magnitude = 0;  // of an element, at most
  double sum = 0;        // of the magnitudes of all elements, at most
};

ValueRange RangeOfInput(std::span<const float> input);

// Of each node of the program, from those of its inputs (per Program::inputs).
std::vector<ValueRange> RangesOf(const Program& program, const ProgramFacts& facts,
                                 std::span<const ValueRange> inputs);

}  // namespace loopfleet::looptree
