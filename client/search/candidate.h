#pragma once
// Candidate: what a search may try, as the steps that lead to it: a schedule of loops, or passes
// over a program. Evaluated: a candidate and its figure.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/looptree/actions/action.h"
#include "common/looptree/tree/key.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::client {

// Goes to a loop and changes it there. Steps name their loop, so one can be taken out of a sequence
// or put into it without moving the others' cursor.
struct Step {
  std::uint32_t loop = 0;  // counted in the order of the lines
  looptree::Action change;
  std::uint32_t times = 1;  // swaps: how many places the loop moves
  friend bool operator==(const Step&, const Step&) = default;
};

// Legal by construction: its SearchSpace applied each step. Of a program it has `passes` and no
// loops, of a loop nest the reverse.
struct Candidate {
  std::vector<std::string> passes;  // flags
  std::vector<Step> steps;
  std::vector<looptree::Action> actions;  // the steps, spelt out from the benchmark's first tree
  looptree::LoopTree tree;                // where they lead
  looptree::TreeRef cursor = 0;
  looptree::TreeKey key;  // of the tree, or of the passes
  std::size_t length() const { return passes.size() + steps.size(); }
};

inline constexpr double kNoFigure = std::numeric_limits<double>::infinity();

struct Evaluated {
  Candidate candidate;
  // What the search makes small: nanoseconds of one run, or a program's instructions. kNoFigure:
  // failed, cut or unknown.
  double cost = kNoFigure;
  bool is_tried = true;  // false: a scorer passed it over, so it says nothing of how a search goes
};

}  // namespace loopfleet::client
