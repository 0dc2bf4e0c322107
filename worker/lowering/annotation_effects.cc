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

void AddLoops(const std::vector<Step>& steps, std::set<LoopId>& loops) {
  for (const Step& step : steps) {
    const auto* loop = std::get_if<LoopStep>(&step.what);
    if (loop == nullptr) continue;
    loops.insert(loop->loop);
    AddLoops(loop->prepare, loops);
    AddLoops(loop->steps, loops);
  }
}

}  // namespace

void AddUnrolling(const KernelPlan& plan, const Unroller& unroller, AnnotationEffects& effects) {
  for (const auto& [id, written] : unroller.written()) {
    const auto& ref = plan.loops[id].ref;
    if (!ref) continue;
    if (written.copies == 1) {
      effects.reasons.emplace(*ref, "the code budget has no room for two iterations");
      continue;
    }
    effects.effective.insert(*ref);
    if (written.copies < written.iterations) {
      effects.partly.emplace(*ref, fmt::format("{} of {}", written.copies, written.iterations));
    }
  }
  std::set<LoopId> run;
  AddLoops(plan.steps, run);
  for (LoopId id = 0; id < plan.loops.size(); ++id) {
    const PlanLoop& loop = plan.loops[id];
    if (!loop.ref || loop.annotation != Annotation::kUnroll ||
        effects.effective.contains(*loop.ref)) {
      continue;
    }
    if (!run.contains(id)) {
      effects.reasons.emplace(*loop.ref, "its results are written where they are computed");
    } else if (loop.extents.size() > 1) {
      effects.reasons.emplace(*loop.ref, "its iteration count varies");
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

void ShareEffects(const std::vector<TreeRef>& outermost, AnnotationEffects& effects) {
  for (TreeRef ref = 0; ref < outermost.size(); ++ref) {
    const TreeRef first = outermost[ref];
    if (first == ref) continue;
    if (effects.effective.contains(first)) effects.effective.insert(ref);
    if (const auto how_far = effects.partly.find(first); how_far != effects.partly.end()) {
      effects.partly.emplace(ref, how_far->second);
    }
    if (const auto why = effects.reasons.find(first); why != effects.reasons.end()) {
      effects.reasons.emplace(ref, why->second);
    }
  }
}

std::vector<std::string> AnnotationNotes(const looptree::LoopTree& tree,
                                         const AnnotationEffects& effects) {
  std::vector<std::string> notes;
  for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    const looptree::TreeNode& node = tree.nodes()[ref];
    if (node.kind != looptree::TreeNode::Kind::kLoop) continue;
    if (looptree::EffectOf(node.annotation) == Annotation::kNone) continue;
    if (effects.partly.contains(ref)) {
      notes.push_back(NoteOf(tree, ref, effects.partly));
    } else if (!effects.effective.contains(ref)) {
      notes.push_back(NoteOf(tree, ref, effects.reasons));
    }
  }
  return notes;
}

}  // namespace loopfleet::worker
