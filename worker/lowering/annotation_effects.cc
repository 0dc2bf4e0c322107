#include "worker/lowering/annotation_effects.h"

#include <fmt/format.h>

namespace loopfleet::worker {
namespace {

using looptree::Annotation;

const char* NameOf(Annotation annotation) {
  switch (annotation) {
    case Annotation::kThread: return "thread";
    case Annotation::kUnroll: return "unroll";
    case Annotation::kVectorize: return "vectorize";
    case Annotation::kNone: break;
  }
  return "none";
}

}  // namespace

std::vector<std::string> AnnotationsWithoutEffect(
    const looptree::LoopTree& tree, const std::set<looptree::TreeRef>& effective,
    const std::map<looptree::TreeRef, std::string>& reasons) {
  std::vector<std::string> names;
  for (looptree::TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    const looptree::TreeNode& node = tree.nodes()[ref];
    if (node.kind != looptree::TreeNode::Kind::kLoop) continue;
    if (node.annotation == Annotation::kNone || effective.contains(ref)) continue;
    names.push_back(fmt::format("L{} {}", ref, NameOf(node.annotation)));
    if (const auto why = reasons.find(ref); why != reasons.end()) {
      names.back() += ": " + why->second;
    }
  }
  return names;
}

}  // namespace loopfleet::worker
