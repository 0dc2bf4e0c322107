#include "common/looptree/features/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/looptree/tree/stride.h"
#include "common/looptree/tree/transform.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

std::vector<std::string> EdgesOf(const Graph& graph, GraphEdge::Kind kind) {
  std::vector<std::string> edges;
  for (const GraphEdge& edge : graph.edges) {
    if (edge.kind != kind) continue;
    std::string text = graph.nodes[edge.source].Id() + "->" + graph.nodes[edge.target].Id();
    if (!edge.label.empty()) text += " " + edge.label;
    edges.push_back(text);
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

TEST(Graph, TreeEdgesAreParentsAndChildren) {
  for (const NamedBenchmark& kind : AllKinds()) {
    SCOPED_TRACE(kind.name);
    const LoopTree& tree = kind.benchmark.start;
    const Graph graph = TreeGraph(tree, 0);
    ASSERT_EQ(graph.nodes.size(), tree.nodes().size());
    std::size_t roots = 0;
    for (const TreeNode& node : tree.nodes()) roots += node.parent == kNoParent;
    EXPECT_EQ(graph.edges.size() + roots, tree.nodes().size());
    for (const GraphEdge& edge : graph.edges) {
      EXPECT_EQ(tree.nodes()[edge.target].parent, edge.source);
    }
    const auto first = TreeGraph(tree, 0, GraphExtent::kFirstNest);
    EXPECT_EQ(first.nodes.size(), tree.nodes()[0].end);
  }
}

TEST(Graph, DataflowOfAMatrixProduct) {
  const Graph graph = DataflowGraph(Opened("benchmark://mm-v0/mm4_8_16").start, 1);
  EXPECT_EQ(EdgesOf(graph, GraphEdge::Kind::kControl),
            (std::vector<std::string>{"L0->L1", "L0->L5", "L1->L2", "L2->L3", "L2->L4", "L5->L6"}));
  EXPECT_EQ(EdgesOf(graph, GraphEdge::Kind::kFlow),
            (std::vector<std::string>{"D0->L3", "D1->L3", "D2->L4", "D3->L6", "L3->D2", "L4->D3",
                                      "L6->D4"}));
  // A is 4 x 16, B is 16 x 8. The product lives in one iteration of n, the sum in one of m.
  EXPECT_EQ(EdgesOf(graph, GraphEdge::Kind::kAccess),
            (std::vector<std::string>{"L0->D0 16", "L0->D1 0", "L0->D4 8", "L1->D0 1", "L1->D1 8",
                                      "L1->D3 0", "L2->D0 0", "L2->D1 1", "L2->D3 1", "L5->D4 1"}));
  EXPECT_EQ(graph.nodes[1].label, "for k in 16 r 0");
  const auto& features = graph.nodes[1].features;
  ASSERT_EQ(features.size(), 6u);
  EXPECT_TRUE(std::is_sorted(features.begin(), features.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  EXPECT_EQ(features[0].value, 1);  // the cursor
}

// The loops that walk over a buffer are between its scope and the operation that accesses it first.
TEST(Graph, AccessEdgesStayInsideTheScope) {
  for (const NamedBenchmark& kind : AllKinds()) {
    SCOPED_TRACE(kind.name);
    const LoopTree& tree = kind.benchmark.start;
    const Graph graph = DataflowGraph(tree, std::nullopt);
    for (const GraphEdge& edge : graph.edges) {
      if (edge.kind != GraphEdge::Kind::kAccess) continue;
      const auto scope = AllocationOf(tree, graph.nodes[edge.target].number);
      const TreeRef loop = graph.nodes[edge.source].number;
      EXPECT_TRUE(!scope || (*scope < loop && loop < tree.nodes()[*scope].end));
    }
    for (const TreeNode& node : tree.nodes()) {
      if (node.kind != TreeNode::Kind::kOperation) continue;
      const auto reads = tree.program().nodes[node.node].inputs.size();
      const auto flows = std::count_if(graph.edges.begin(), graph.edges.end(), [&](const auto& e) {
        return e.kind == GraphEdge::Kind::kFlow &&
               tree.LeafOf(node.node) == graph.nodes[e.target].number &&
               graph.nodes[e.target].kind == GraphNode::Kind::kOperation;
      });
      EXPECT_EQ(static_cast<std::size_t>(flows), reads);
    }
  }
}

TEST(Graph, DotTreeNamesItsNodesInItsEdges) {
  const auto split = SplitLoop(Opened("benchmark://mm-v0/mm33_9_7").start, 0, 8);
  const std::string dot = TreeDot(*split, 1);
  EXPECT_NE(dot.find(" L0 -> L1;\n"), std::string::npos);
  EXPECT_EQ(dot.find(" 0 -> 1"), std::string::npos);
  EXPECT_NE(dot.find("L0 [shape=record,label=\"{'type':1,'vectorize':0,'unroll': 0,'name':0,"
                     "'size':4,'tail':1,'cursor':0,}\"];"),
            std::string::npos);
}

TEST(Graph, ScheduleDotShowsDimsAboveLoops) {
  const auto split = SplitLoop(Opened("benchmark://mm-v0/mm33_9_7").start, 0, 8);
  const std::string dot = ScheduleDot(*split);
  const std::string& m = split->program().dims[split->nodes()[0].dim].name;
  EXPECT_NE(dot.find("{multiply : ["), std::string::npos) << dot;
  EXPECT_NE(dot.find("|{" + m + ":4 r 1|" + m + ":8|"), std::string::npos) << dot;
  EXPECT_NE(dot.find("[shape=record,label=\"{read : ["), std::string::npos) << dot;
  EXPECT_NE(dot.find(" -> "), std::string::npos) << dot;
}

TEST(Graph, NoLoopsAndNoCrash) {
  const Benchmark scalar = WholeLoops({.dims = {},
                                       .nodes = {{.op = Op::kRead},
                                                 {.op = Op::kNegate, .inputs = {0}},
                                                 {.op = Op::kWrite, .inputs = {1}}}});
  EXPECT_EQ(TreeGraph(scalar.start, 0).edges.size(), 0u);
  EXPECT_EQ(DataflowGraph(scalar.start, 0).edges.size(), 4u);
  EXPECT_NE(ProgramDot(scalar.start, 0).find("'node':'negate'"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet::looptree
