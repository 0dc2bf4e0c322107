#include "worker/lowering/annotation_effects.h"

#include <fmt/format.h>

namespace loopfleet::worker {
namespace {

using looptree::Annotation;
using looptree::TreeRef;

const char* NameOf(Annotation annotation) {
  switch (annotation) {
    case Annotation::kThread: return "thread";
    case Annotation::kUnroll: return "unroll";
    case Annotation::kVectorize: return "vectorize";
    case Annotation::kNone: break;
  }
  return "none";
}

std::string NoteOf(const looptree::LoopTree& tree, TreeRef loop,
                   const std::map<TreeRef, std::string>& details) {
  const char* name = NameOf(tree.nodes()[loop].annotation);
  const auto detail = details.find(loop);
  return detail == details.end() ? fmt::format("L{} {}", loop, name)
                                 : fmt::format("L{} {}: {}", loop, name, detail->second);
}

}  // namespace

void AddUnrolling(const KernelPlan& plan, const Unroller& unroller, AnnotationEffects& effects) {
  for (const auto& [id, written] : unroller.written()) {
    const auto& ref = plan.loops[id].ref;
    if (!ref) continue;
    if (written.copies == 1) {
      effects.reasons.emplace(*ref, "one iteration fills the code budget");
      continue;
    }
    effects.effective.insert(*ref);
    if (written.copies < written.iterations) {
      effects.partly.emplace(*ref, fmt::format("{} of {}", written.copies, written.iterations));
    }
  }
}

AnnotationEffects WithOriginalLoops(const AnnotationEffects& effects,
                                    const std::vector<TreeRef>& origins) {
  AnnotationEffects original;
  for (const TreeRef ref : effects.effective) original.effective.insert(origins[ref]);
  for (const auto& [ref, how_far] : effects.partly) original.partly.emplace(origins[ref], how_far);
  for (const auto& [ref, why] : effects.reasons) original.reasons.emplace(origins[ref], why);
  return original;
}

std::vector<std::string> AnnotationNotes(const looptree::LoopTree& tree,
                                         const AnnotationEffects& effects) {
  std::vector<std::string> notes;
  for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    const looptree::TreeNode& node = tree.nodes()[ref];
    if (node.kind != looptree::TreeNode::Kind::kLoop) continue;
    if (node.annotation == Annotation::kNone) continue;
    if (effects.partly.contains(ref)) {
      notes.push_back(NoteOf(tree, ref, effects.partly));
    } else if (!effects.effective.contains(ref)) {
      notes.push_back(NoteOf(tree, ref, effects.reasons));
    }
  }
  return notes;
}

}  // namespace loopfleet::worker
