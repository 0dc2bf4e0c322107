#pragma once
// AnnotationEffects: which annotations of a tree changed nothing, as a result says it.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

// "L3 vectorize", with the reason behind it where there is one: "L3 thread: %5 reduces over it".
std::vector<std::string> AnnotationsWithoutEffect(
    const looptree::LoopTree& tree, const std::set<looptree::TreeRef>& effective,
    const std::map<looptree::TreeRef, std::string>& reasons);

}  // namespace loopfleet::worker
