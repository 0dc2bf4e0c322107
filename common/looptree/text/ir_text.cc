#include <fmt/format.h>

#include <iterator>

#include "common/looptree/program/number_text.h"
#include "common/looptree/program/view_map.h"
#include "common/looptree/text/text.h"
#include "common/looptree/text/view_text.h"
#include "common/looptree/tree/annotation_text.h"

namespace loopfleet::looptree {
namespace {

void AppendList(const std::vector<std::uint32_t>& ids, std::string& text) {
  for (const std::uint32_t id : ids) fmt::format_to(std::back_inserter(text), "{},", id);
}

void AppendNode(const LoopTree& tree, NodeId id, Words words, std::string& text) {
  const Node& node = tree.program().nodes[id];
  const NodeSchedule& schedule = tree.schedule()[id];
  auto out = std::back_inserter(text);
  fmt::format_to(out, "n:{}:", static_cast<int>(node.op));
  AppendList(node.inputs, text);
  text += ':';
  AppendList(node.dims, text);
  text += ':';
  const ViewText view = node.op == Op::kView ? ViewTextOf(tree.program(), id) : ViewText{};
  fmt::format_to(out, "{}:{}:{}:", view.constraints, view.symbol_map,
                 NumberText(schedule.priority));
  for (const LoopSpec& loop : schedule.loops) {
    fmt::format_to(out, "{};{};{},", loop.dim, loop.size, loop.tail);
  }
  text += ':';
  for (std::size_t i = 0; i < schedule.loops.size(); ++i) {
    if (!schedule.loops[i].reusable) fmt::format_to(out, "{},", i);
  }
  text += ':';
  for (const LoopSpec& loop : schedule.loops) {
    const bool is_kept = words == Words::kKept;
    fmt::format_to(out, "{},",
                   AnnotationText(is_kept ? loop.annotation : EffectOf(loop.annotation)));
  }
  text += ':';
  if (node.op == Op::kConstant) text += "constant=" + HexNumberText(node.constant);
  if (node.op == Op::kView && NeedsGuard(tree.program(), node)) {
    text += "outside=" + HexNumberText(node.outside);
  }
  text += ":\n";
}

}  // namespace

std::string IrTextOf(const LoopTree& tree, Words words) {
  std::string text;
  for (const Dim& dim : tree.program().dims) {
    fmt::format_to(std::back_inserter(text), "v:{}\n", dim.name);
  }
  for (NodeId id = 0; id < tree.program().nodes.size(); ++id) {
    AppendNode(tree, id, words, text);
  }
  text += "i:";
  AppendList(tree.program().inputs, text);
  text += "\no:";
  AppendList(tree.program().outputs, text);
  text += '\n';
  return text;
}

}  // namespace loopfleet::looptree
