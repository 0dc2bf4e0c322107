#pragma once
// TreeKey: identifies a tree, ProgramKey its program. Two keys are equal exactly if program (names
// normalised, reads included), loops and annotations are equal; the cursor and the actions before
// do not matter. Stable across runs, machines and versions (golden tests).

#include <string>

#include "common/base/content_key.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

using TreeKey = ContentKey;  // of the canonical form

// The text that is hashed. Readable, so that two trees can be compared by eye.
std::string CanonicalForm(const LoopTree& tree);
TreeKey KeyOf(const LoopTree& tree);

// Equal exactly for programs that differ at most in the names and the order of declaration of their
// dimensions: what schedules are found by. Loops do not matter. The program must be valid, as that
// of a tree is.
using ProgramKey = ContentKey;

std::string CanonicalForm(const Program& program);
ProgramKey ProgramKeyOf(const Program& program);

}  // namespace loopfleet::looptree
