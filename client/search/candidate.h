#pragma once
// Candidate: a schedule that a search may try, as the steps that lead to it. Evaluated: a candidate
// and its figure.

#include <cstdint>
#include <limits>
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

// Legal by construction: SearchSpace applied each action.
struct Candidate {
  std::vector<Step> steps;
  std::vector<looptree::Action> actions;  // the steps, spelt out from the benchmark's first tree
  looptree::LoopTree tree;                // where they lead
  looptree::TreeRef cursor = 0;
  looptree::TreeKey key;  // of the tree
};

inline constexpr double kNoFigure = std::numeric_limits<double>::infinity();

struct Evaluated {
  Candidate candidate;
  double elapsed_ns = kNoFigure;  // of one run; kNoFigure: failed, cut or unknown
};

}  // namespace loopfleet::client
