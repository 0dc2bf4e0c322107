#pragma once
// LoopNames: which loop or operation of a tree a Python caller means. Loops are named by their
// number ("L3" or 3), by label ("m'", the dimension with a prime for each loop over it around), or
// by a Loop of this or another tree. Operations by their number in the tree or as "%5".

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::python {

// A loop as callers see it: comparable across trees.
struct LoopView {
  looptree::TreeRef ref = 0;
  looptree::DimId var = 0;
  std::string name;   // of the dimension
  std::string label;  // "m'"
  std::uint32_t depth = 0;
  std::int64_t size = 1;
  std::int64_t tail = 0;
  std::string annotation;

  // The same part of the same dimension; where it stands does not matter.
  bool SameLoop(const LoopView& other) const {
    return label == other.label && size == other.size && tail == other.tail;
  }
};

LoopView LoopAt(const looptree::LoopTree& tree, looptree::TreeRef ref);

// Whether the name is that of an operation: the number of its line, or "%5".
bool NamesOperation(const looptree::LoopTree& tree, nanobind::handle name);
// Raise ScheduleError for a name that means nothing here, or more than one thing.
looptree::TreeRef LoopNamed(const looptree::LoopTree& tree, nanobind::handle name);
// Loops inside each other: of several with one label, those are meant that are in one nest with the
// others. If the others leave a choice, it is the first nest.
std::vector<looptree::TreeRef> LoopsNamed(const looptree::LoopTree& tree,
                                          const std::vector<nanobind::object>& names);
// Any node of the tree.
looptree::TreeRef NodeNamed(const looptree::LoopTree& tree, nanobind::handle name);
// An operation, as the number of its program node.
looptree::NodeId OperationNamed(const looptree::LoopTree& tree, nanobind::handle name);
// A word without an effect is taken, with a UserWarning. Raises ScheduleError for what is no word.
looptree::Annotation AnnotationNamed(const std::string& word);

}  // namespace loopfleet::python
