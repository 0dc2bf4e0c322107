#pragma once
// TreeBuilder: merges the loops of consecutive operations into a tree (spec B.3). Rejects a
// schedule that does not cover the program, cannot be run, or exceeds the limits.

#include <memory>

#include "common/looptree/program/program_facts.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

Checked<LoopTree> BuildTree(std::shared_ptr<const Program> program,
                            std::shared_ptr<const ProgramFacts> facts, Schedule schedule,
                            const Limits& limits);

}  // namespace loopfleet::looptree
