#include <fmt/format.h>

#include <iterator>

#include "common/looptree/program/number_text.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/annotation_text.h"

namespace loopfleet::looptree {
namespace {

std::string_view LoopSuffix(const TreeNode& loop, const TreeTextOptions& options) {
  if (options.dialect == Dialect::kSimple && loop.annotation == Annotation::kThread) {
    return options.target == Target::kCuda ? "[thread]" : "cpu_parallel [thread]";
  }
  return AnnotationText(loop.annotation);
}

void AppendLoop(const LoopTree& tree, TreeRef ref, const TreeTextOptions& options,
                std::string& text) {
  const TreeNode& loop = tree.nodes()[ref];
  auto out = std::back_inserter(text);
  fmt::format_to(out, "for {}", tree.program().dims[loop.dim].name);
  text.append(loop.dim_depth, '\'');
  fmt::format_to(out, " in {}", loop.size);
  if (loop.tail > 0) fmt::format_to(out, " r {}", loop.tail);
  fmt::format_to(out, " : L{}", ref);
  const std::string_view suffix = LoopSuffix(loop, options);
  const bool at_cursor = options.cursor == ref;
  if (!suffix.empty() || at_cursor) fmt::format_to(out, " {}", suffix);
}

}  // namespace

std::string OperationText(const Program& program, NodeId id) {
  const Node& node = program.nodes[id];
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "%{}[", id);
  for (std::size_t i = 0; i < node.dims.size(); ++i) {
    fmt::format_to(out, "{}{}", i == 0 ? "" : ", ", program.dims[node.dims[i]].name);
  }
  fmt::format_to(out, "] <- {}(", OpName(node.op));
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Node& input = program.nodes[node.inputs[i]];
    if (i > 0) text += ", ";
    if (input.op == Op::kConstant && input.dims.empty()) {
      text += NumberText(input.constant);
    } else {
      fmt::format_to(out, "%{}", node.inputs[i]);
    }
  }
  if (node.op == Op::kConstant) text += NumberText(node.constant);
  return text += ')';
}

std::string TreeText(const LoopTree& tree, const TreeTextOptions& options) {
  std::string text;
  for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    const TreeNode& node = tree.nodes()[ref];
    text.append(node.depth, ' ');
    if (node.kind == TreeNode::Kind::kLoop) {
      AppendLoop(tree, ref, options, text);
    } else {
      text += OperationText(tree.program(), node.node);
    }
    if (options.cursor == ref)
      fmt::format_to(std::back_inserter(text), " <<<<<< cursor (line {} )", ref);
    text += '\n';
  }
  return text;
}

}  // namespace loopfleet::looptree
