#pragma once
// ValueRange: bounds on all elements of a node's result, known before any is computed. Above all,
// whether float32 can round on the way to them.

#include <span>
#include <vector>

#include "common/looptree/program/program.h"
#include "common/looptree/program/program_facts.h"

namespace loopfleet::looptree {

struct ValueRange {
  bool exact = false;  // no operation up to here rounds, in any order
  bool integer = false;
  double magnitude = 0;  // largest possible, of one element; infinite constants aside
  double sum = 0;        // largest possible, of all elements' magnitudes
  // Whether an element may be an infinite constant, or what became of one.
  bool minus_infinity = false;
  bool plus_infinity = false;
};

ValueRange RangeOfInput(std::span<const float> input);

// The ranges of all nodes, computed from those of the inputs (per Program::inputs).
std::vector<ValueRange> RangesOf(const Program& program, const ProgramFacts& facts,
                                 std::span<const ValueRange> inputs);

}  // namespace loopfleet::looptree
