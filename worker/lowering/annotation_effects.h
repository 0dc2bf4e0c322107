#pragma once
// AnnotationEffects: which annotations of a tree changed nothing, in the words of a result's
// `no_effect`.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

// "L3 vectorize", followed by the reason if one is known: "L3 thread: %5 reduces over it".
std::vector<std::string> AnnotationsWithoutEffect(
    const looptree::LoopTree& tree, const std::set<looptree::TreeRef>& effective,
    const std::map<looptree::TreeRef, std::string>& reasons);

}  // namespace loopfleet::worker
