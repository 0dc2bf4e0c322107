#pragma once
// AnnotationEffects: which annotations of a tree took effect, how far, and why others did not.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/unroller.h"

namespace loopfleet::worker {

struct AnnotationEffects {
  std::set<looptree::TreeRef> effective;             // loops whose annotation changed the code
  std::map<looptree::TreeRef, std::string> partly;   // of these: how far, "16 of 256"
  std::map<looptree::TreeRef, std::string> reasons;  // of the others, if one is known
};

// Adds what `unroller` did in the second emission of `plan`.
void AddUnrolling(const KernelPlan& plan, const Unroller& unroller, AnnotationEffects& effects);

// With `origins[ref]` for each loop: what a rewritten tree's effects are on the tree that it was
// made of.
AnnotationEffects WithOriginalLoops(const AnnotationEffects& effects,
                                    const std::vector<looptree::TreeRef>& origins);

// Where `outermost[loop]` is not the loop itself: what became of it is what became of that one, as
// they were made one loop.
void ShareEffects(const std::vector<looptree::TreeRef>& outermost, AnnotationEffects& effects);

// For each loop whose annotation changed nothing or was followed in part: "L3 vectorize", "L3
// thread: %5 reduces over it", "L3 unroll: 16 of 256".
std::vector<std::string> AnnotationNotes(const looptree::LoopTree& tree,
                                         const AnnotationEffects& effects);

}  // namespace loopfleet::worker
