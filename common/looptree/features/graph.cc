#include "common/looptree/features/graph.h"

#include <fmt/format.h>

#include <cmath>

#include "common/looptree/text/text.h"
#include "common/looptree/tree/stride.h"

namespace loopfleet::looptree {
namespace {

constexpr std::uint32_t kUndrawn = UINT32_MAX;
constexpr std::int64_t kControlType = 3;
constexpr std::int64_t kDataType = 4;

std::string LoopLabel(const LoopTree& tree, const TreeNode& loop) {
  return fmt::format("for {} in {} r {}", tree.program().dims[loop.dim].name, loop.size, loop.tail);
}

std::string DataLabel(const Program& program, NodeId id) {
  std::string label = fmt::format("%{}[ ", id);
  for (const DimId dim : program.nodes[id].dims) label += program.dims[dim].name + " ";
  return label += ']';
}

TreeRef EndOf(const LoopTree& tree, GraphExtent extent) {
  return extent == GraphExtent::kFirstNest ? tree.nodes()[0].end
                                           : static_cast<TreeRef>(tree.nodes().size());
}

bool IsLoop(const TreeNode& node) { return node.kind == TreeNode::Kind::kLoop; }

// Builds the dataflow graph in pre-order of the tree. A buffer appears where it is first accessed.
class DataflowDrawing {
 public:
  DataflowDrawing(const LoopTree& tree, std::optional<TreeRef> cursor, GraphExtent extent)
      : tree_(tree),
        cursor_(cursor),
        end_(EndOf(tree, extent)),
        data_(tree.program().nodes.size(), kUndrawn) {}

  Graph Draw() {
    // Tree nodes come first, so that a tree node's index in the graph is its TreeRef.
    for (TreeRef ref = 0; ref < end_; ++ref) AddTreeNode(ref);
    for (TreeRef ref = 0; ref < end_; ++ref) {
      if (IsLoop(tree_.nodes()[ref])) {
        for (const TreeRef child : tree_.Children(ref)) {
          graph_.edges.push_back({.kind = GraphEdge::Kind::kControl,
                                  .source = ref,
                                  .target = child,
                                  .label = {},
                                  .features = {{"type", kControlType}}});
        }
      } else {
        AddOperation(ref);
      }
    }
    return std::move(graph_);
  }

 private:
  void AddTreeNode(TreeRef ref) {
    const TreeNode& node = tree_.nodes()[ref];
    GraphNode drawn{.number = ref};
    if (IsLoop(node)) {
      drawn.kind = GraphNode::Kind::kLoop;
      drawn.label = LoopLabel(tree_, node);
      drawn.features = {{"cursor", ref == cursor_},
                        {"size", node.size},
                        {"tail", node.tail},
                        {"type", static_cast<std::int64_t>(GraphNode::Kind::kLoop)},
                        {"unroll", node.annotation == Annotation::kUnroll},
                        {"vectorize", node.annotation == Annotation::kVectorize}};
    } else {
      drawn.kind = GraphNode::Kind::kOperation;
      drawn.label = OperationText(tree_.program(), node.node);
      drawn.features = {{"cursor", ref == cursor_},
                        {"type", static_cast<std::int64_t>(GraphNode::Kind::kOperation)}};
    }
    graph_.nodes.push_back(std::move(drawn));
  }

  void AddOperation(TreeRef ref) {
    const NodeId id = tree_.nodes()[ref].node;
    for (const NodeId input : tree_.program().nodes[id].inputs) {
      AddFlow(DataNode(input, ref), ref);
    }
    AddFlow(ref, DataNode(id, ref));
  }

  void AddFlow(std::uint32_t source, std::uint32_t target) {
    graph_.edges.push_back({.kind = GraphEdge::Kind::kFlow,
                            .source = source,
                            .target = target,
                            .label = {},
                            .features = {{"stride", 1}, {"type", kDataType}}});
  }

  // The data node of `id`. The first call adds it, with access edges from the loops around `leaf`
  // that are inside its scope.
  std::uint32_t DataNode(NodeId id, TreeRef leaf) {
    if (data_[id] != kUndrawn) return data_[id];
    data_[id] = static_cast<std::uint32_t>(graph_.nodes.size());
    graph_.nodes.push_back({.kind = GraphNode::Kind::kData,
                            .number = id,
                            .label = DataLabel(tree_.program(), id),
                            .features = {{"type", std::int64_t{2}}}});
    const Strides strides = StridesOf(tree_, id);
    const auto scope = AllocationOf(tree_, id);
    std::vector<TreeRef> loops;
    for (TreeRef loop = tree_.nodes()[leaf].parent; loop != kNoParent && loop != scope;
         loop = tree_.nodes()[loop].parent) {
      loops.push_back(loop);
    }
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      const std::int64_t inner = tree_.InnerExtent(*loop);
      const double stride = strides[tree_.nodes()[*loop].dim] * static_cast<double>(inner);
      graph_.edges.push_back({.kind = GraphEdge::Kind::kAccess,
                              .source = *loop,
                              .target = data_[id],
                              .label = fmt::format("{:.0f}", std::abs(stride)),
                              .features = {{"stride", inner}, {"type", kDataType}}});
    }
    return data_[id];
  }

  const LoopTree& tree_;
  std::optional<TreeRef> cursor_;
  TreeRef end_;                      // one past the last tree node drawn
  std::vector<std::uint32_t> data_;  // per program node: index of its data node
  Graph graph_;
};

}  // namespace

std::string GraphNode::Id() const {
  return fmt::format("{}{}", kind == Kind::kData ? 'D' : 'L', number);
}

Graph TreeGraph(const LoopTree& tree, std::optional<TreeRef> cursor, GraphExtent extent) {
  Graph graph;
  for (TreeRef ref = 0; ref < EndOf(tree, extent); ++ref) {
    const TreeNode& node = tree.nodes()[ref];
    const bool loop = IsLoop(node);
    graph.nodes.push_back(
        {.kind = loop ? GraphNode::Kind::kLoop : GraphNode::Kind::kOperation,
         .number = ref,
         .label = loop ? LoopLabel(tree, node) : OperationText(tree.program(), node.node),
         .features = {{"cursor", ref == cursor},
                      {"name", loop ? static_cast<std::int64_t>(node.dim) : 0},
                      {"size", loop ? node.size : 0},
                      {"tail", node.tail},
                      {"type", loop},
                      {"unroll", node.annotation == Annotation::kUnroll},
                      {"vectorize", node.annotation == Annotation::kVectorize}}});
    if (node.parent != kNoParent) {
      graph.edges.push_back({.kind = GraphEdge::Kind::kControl,
                             .source = node.parent,
                             .target = ref,
                             .label = {},
                             .features = {{"type", kControlType}}});
    }
  }
  return graph;
}

Graph DataflowGraph(const LoopTree& tree, std::optional<TreeRef> cursor, GraphExtent extent) {
  return DataflowDrawing(tree, cursor, extent).Draw();
}

}  // namespace loopfleet::looptree
