// What no golden case covers; the expectations were worked out by hand from docs/LLVM.md.
#include "worker/llvm_env/observations/programl.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <string>
#include <vector>

#include "worker/llvm_env/program_module.h"

namespace loopfleet::worker {
namespace {

using passes::ProgramlGraph;

ProgramlGraph GraphOf(std::string_view text) {
  const auto program = ProgramModule::Parse(text);
  EXPECT_TRUE(program) << program.error().message;
  return ProgramlOf(program->module()).value();
}

std::vector<std::string> TextsOf(const ProgramlGraph& graph, ProgramlGraph::NodeType type) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < graph.node_type.size(); ++i) {
    if (graph.node_type[i] == type) texts.push_back(graph.texts[graph.node_text[i]]);
  }
  return texts;
}

// "add -> ret 0": sources and targets by their text, with the position.
std::vector<std::string> EdgesOf(const ProgramlGraph& graph, ProgramlGraph::Flow flow) {
  std::vector<std::string> edges;
  for (std::size_t i = 0; i < graph.edge_flow.size(); ++i) {
    if (graph.edge_flow[i] != flow) continue;
    edges.push_back(fmt::format("{} -> {} {}", graph.texts[graph.node_text[graph.edge_source[i]]],
                                graph.texts[graph.node_text[graph.edge_target[i]]],
                                graph.edge_position[i]));
  }
  return edges;
}

TEST(Programl, InvokesAddNoCallEdgesAndTwoControlEdges) {
  const ProgramlGraph graph = GraphOf(R"(
declare void @g()
declare i32 @personality(...)
define void @f() personality ptr @personality {
  invoke void @g() to label %ok unwind label %bad
ok:
  ret void
bad:
  %l = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %l
}
)");
  EXPECT_EQ(EdgesOf(graph, ProgramlGraph::Flow::kControl),
            (std::vector<std::string>{"landingpad -> resume 0", "invoke -> ret 0",
                                      "invoke -> landingpad 1"}));
  EXPECT_EQ(TextsOf(graph, ProgramlGraph::NodeType::kVariable),
            (std::vector<std::string>{"struct"}));
  const auto calls = EdgesOf(graph, ProgramlGraph::Flow::kCall);
  EXPECT_EQ(std::ranges::count_if(
                calls, [](const std::string& edge) { return edge.starts_with("invoke"); }),
            0);
}

TEST(Programl, TypesOfVectorsArraysAndGlobals) {
  const ProgramlGraph graph = GraphOf(R"(
@g = global [3 x i32] zeroinitializer
define <4 x float> @f(<4 x float> %v, ptr %unused) {
  %w = fadd <4 x float> %v, <float 1.0, float 1.0, float 1.0, float 1.0>
  %x = load i32, ptr @g
  %y = load i32, ptr @g
  ret <4 x float> %w
}
)");
  // %w where it is returned, then the argument; %unused has no node.
  EXPECT_EQ(TextsOf(graph, ProgramlGraph::NodeType::kVariable),
            (std::vector<std::string>{"<4 x float>", "<4 x float>"}));
  // A global is one constant for all its uses.
  EXPECT_EQ(TextsOf(graph, ProgramlGraph::NodeType::kConstant),
            (std::vector<std::string>{"<4 x float>", "ptr"}));
}

TEST(Programl, OperandsWithoutNodesUseUpTheirPositions) {
  const ProgramlGraph graph = GraphOf(R"(
declare void @callee(i32)
define void @f(ptr %p, i1 %c) {
  call void asm "nop", "r"(i32 7)
  call void %p(i32 8)
  call void @callee(i32 9)
  br i1 %c, label %a, label %b
a:
  ret void
b:
  ret void
}
)");
  // The callee is the last operand: a pointer has a node at position 1, functions and inline
  // assembly have none.
  EXPECT_EQ(EdgesOf(graph, ProgramlGraph::Flow::kData),
            (std::vector<std::string>{"ptr -> call 1", "i1 -> br 0", "i32 -> call 0",
                                      "i32 -> call 0", "i32 -> call 0"}));
}

TEST(Programl, BlocksThatCannotBeReachedAreNotConnected) {
  const ProgramlGraph graph = GraphOf(R"(
define void @f() {
  ret void
dead:
  %x = add i32 1, 1
  br label %end
end:
  ret void
}
)");
  EXPECT_EQ(EdgesOf(graph, ProgramlGraph::Flow::kControl),
            (std::vector<std::string>{"add -> br 0"}));
  // Only the reachable return leaves the function.
  EXPECT_EQ(EdgesOf(graph, ProgramlGraph::Flow::kCall),
            (std::vector<std::string>{"[external] -> ret 0", "ret -> [external] 0"}));
}

}  // namespace
}  // namespace loopfleet::worker
