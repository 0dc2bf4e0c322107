// Graphviz text as the original writes it, so that its readers keep working, with one exception:
// the edges of `dot_tree` name their nodes "L0", "L1". The original writes "0" and "1", which
// Graphviz takes for other nodes, so its graph falls apart.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/looptree/features/graph.h"
#include "common/looptree/program/program_facts.h"

namespace loopfleet::looptree {
namespace {

constexpr std::string_view kHead = "digraph G {\n node [fontname = \"courier\", fontsize=12];\n";

// Escapes braces, bars and angle brackets, which mark fields in a record's label. Dimension names
// may contain braces and angle brackets.
std::string RecordText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("{}<>|").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string FeatureText(const std::vector<GraphFeature>& features) {
  std::string text = "{";
  for (const auto& [name, value] : features) {
    fmt::format_to(std::back_inserter(text), "'{}':{},", name, value);
  }
  return text += '}';
}

std::int64_t FeatureOf(const GraphNode& node, std::string_view name) {
  const auto at = std::find_if(node.features.begin(), node.features.end(),
                               [&](const GraphFeature& feature) { return feature.name == name; });
  return at == node.features.end() ? 0 : at->value;
}

std::string_view ShapeOf(GraphNode::Kind kind) {
  switch (kind) {
    case GraphNode::Kind::kOperation: return "hexagon";
    case GraphNode::Kind::kLoop: return "record";
    case GraphNode::Kind::kData: return "ellipse";
  }
  return "";
}

std::string_view ColorOf(GraphEdge::Kind kind) {
  switch (kind) {
    case GraphEdge::Kind::kControl: return "black";
    case GraphEdge::Kind::kAccess: return "red";
    case GraphEdge::Kind::kFlow: return "blue";
  }
  return "";
}

// The rank of each dimension in the order in which loops first run over it: its "name" in `dot`.
std::vector<std::size_t> DimRanks(const LoopTree& tree) {
  std::vector<std::size_t> ranks(tree.program().dims.size(), SIZE_MAX);
  std::size_t next = 0;
  for (const TreeNode& node : tree.nodes()) {
    if (node.kind == TreeNode::Kind::kLoop && ranks[node.dim] == SIZE_MAX) ranks[node.dim] = next++;
  }
  return ranks;
}

}  // namespace

std::string TreeDot(const LoopTree& tree, std::optional<TreeRef> cursor) {
  const Graph graph = TreeGraph(tree, cursor, GraphExtent::kFirstNest);
  std::string text(kHead);
  auto out = std::back_inserter(text);
  for (const GraphNode& node : graph.nodes) {
    const auto feature = [&](std::string_view name) { return FeatureOf(node, name); };
    // The original writes the blank before a loop's "unroll" value.
    fmt::format_to(out,
                   "{} [shape=record,label=\"{{'type':{},'vectorize':{},'unroll':{}{},'name':{},"
                   "'size':{},'tail':{},'cursor':{},}}\"];\n",
                   node.Id(), feature("type"), feature("vectorize"),
                   node.kind == GraphNode::Kind::kLoop ? " " : "", feature("unroll"),
                   feature("name"), feature("size"), feature("tail"), feature("cursor"));
  }
  for (const GraphEdge& edge : graph.edges) {
    fmt::format_to(out, " {} -> {};\n", graph.nodes[edge.source].Id(),
                   graph.nodes[edge.target].Id());
  }
  return text += "}\n";
}

std::string DataflowDot(const LoopTree& tree, std::optional<TreeRef> cursor) {
  const Graph graph = DataflowGraph(tree, cursor, GraphExtent::kFirstNest);
  std::string text(kHead);
  auto out = std::back_inserter(text);
  for (const GraphNode& node : graph.nodes) {
    fmt::format_to(out, "{} [shape={},label=\"{}\",feature_dict=\"{}\"];\n", node.Id(),
                   ShapeOf(node.kind),
                   node.kind == GraphNode::Kind::kLoop ? RecordText(node.label) : node.label,
                   FeatureText(node.features));
  }
  for (const GraphEdge& edge : graph.edges) {
    fmt::format_to(out, "{} -> {} [color=\"{}\",label=\"{}\",feature_dict=\"{}\"];\n",
                   graph.nodes[edge.source].Id(), graph.nodes[edge.target].Id(), ColorOf(edge.kind),
                   edge.label, FeatureText(edge.features));
  }
  return text += "}\n";
}

std::string ProgramDot(const LoopTree& tree, std::optional<TreeRef> cursor, DotForm form) {
  const Program& program = tree.program();
  const std::string_view escape = form == DotForm::kDrawable ? "\\" : "";
  const std::vector<std::size_t> ranks = DimRanks(tree);
  std::string text(kHead);
  auto out = std::back_inserter(text);
  for (const NodeId id : tree.facts().order) {
    fmt::format_to(out, " {}[shape=record,label=\"{{'node':'{}','iters': [", id,
                   OpName(program.nodes[id].op));
    const auto& dims = program.nodes[id].dims;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      fmt::format_to(out, "{}'{}'", i == 0 ? "" : ", ", RecordText(program.dims[dims[i]].name));
    }
    text += "],";
    const auto loops = tree.LoopsOf(id);
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const TreeNode& loop = tree.nodes()[loops[i]];
      fmt::format_to(out,
                     "'L{}':{}{{'name':{},'range':{},'tail':{},'vectorize':{},'unroll':{},"
                     "'cursor':{},{}}},",
                     i, escape, ranks[loop.dim], loop.size, loop.tail,
                     static_cast<int>(loop.annotation == Annotation::kVectorize),
                     static_cast<int>(loop.annotation == Annotation::kUnroll),
                     static_cast<int>(loops[i] == cursor), escape);
    }
    text += "}\"];\n";
    for (const NodeId consumer : tree.facts().nodes[id].consumers) {
      fmt::format_to(out, " {} -> {};\n", id, consumer);
    }
  }
  return text += "}\n";
}

std::string ScheduleDot(const LoopTree& tree) {
  const Program& program = tree.program();
  std::string text(kHead);
  auto out = std::back_inserter(text);
  for (const NodeId id : tree.facts().order) {
    const Node& node = program.nodes[id];
    fmt::format_to(out, " {}[shape=record,label=\"{{{} : [", id, OpName(node.op));
    for (std::size_t i = 0; i < node.dims.size(); ++i) {
      fmt::format_to(out, "{}{}", i == 0 ? "" : ", ", RecordText(program.dims[node.dims[i]].name));
    }
    text += ']';
    const auto loops = tree.LoopsOf(id);
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const TreeNode& loop = tree.nodes()[loops[i]];
      fmt::format_to(out, "{}{}:{}", i == 0 ? "|{" : "|", RecordText(program.dims[loop.dim].name),
                     loop.size);
      if (loop.tail > 0) fmt::format_to(out, " r {}", loop.tail);
    }
    text += loops.empty() ? "}\"];\n" : "}}\"];\n";
    for (const NodeId consumer : tree.facts().nodes[id].consumers) {
      fmt::format_to(out, " {} -> {};\n", id, consumer);
    }
  }
  return text += "}\n";
}

}  // namespace loopfleet::looptree
