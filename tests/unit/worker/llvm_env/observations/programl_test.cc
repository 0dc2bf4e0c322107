// What no golden case covers; the expectations were worked out by hand from docs/LLVM.md.
#include "worker/llvm_env/observations/programl.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

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

// What LLVM prints for a value alone.
template <class Value>
std::string Alone(const Value& value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  value.print(stream);
  return llvm::StringRef(text).ltrim().str();
}

constexpr std::string_view kTextProgram = R"(
  %pair = type { i32, i32 }
  @g = global i32 7, !type !2
  declare void @outside()
  declare i64 @llvm.read_register.i64(metadata)
  define i32 @first(i32, ptr %p) {
    %2 = load %pair, ptr %p, !tbaa !3
    %a = extractvalue %pair %2, 0
    %3 = add i32 %a, 5
    store i32 %3, ptr @g, !tbaa !3
    ret i32 %3
  }
  define i32 @second(i32 %x) {
  entry:
    switch i32 %x, label %loop [ i32 3, label %out ]
  loop:
    %i = phi i32 [ 0, %entry ], [ %next, %loop ]
    %0 = call i64 @llvm.read_register.i64(metadata !1)
    %next = add i32 %i, %x
    %done = icmp eq i32 %next, 9
    br i1 %done, label %out, label %loop, !llvm.loop !0
  out:
    ret i32 %x
  }
  !0 = distinct !{!0}
  !1 = !{!"rsp"}
  !2 = !{i64 0, !"typeid"}
  !3 = !{!4, !4, i64 0}
  !4 = !{!"int", !5}
  !5 = !{!"root"}
)";

TEST(Programl, FullTextsAreWhatLlvmPrintsForEachAlone) {
  const auto program = ProgramModule::Parse(kTextProgram);
  ASSERT_TRUE(program) << program.error().message;
  std::vector<std::string> texts;
  const ProgramlGraph graph = ProgramlOf(program->module(), &texts).value();
  EXPECT_EQ(graph, ProgramlOf(program->module()).value());
  ASSERT_EQ(texts.size(), graph.node_type.size());
  std::vector<std::string> instructions = {""};  // [external]
  for (const llvm::Function& function : program->module()) {
    if (function.isDeclaration()) instructions.push_back("");
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      instructions.push_back(Alone(instruction));
    }
  }
  std::vector<std::string> of_instructions, of_others;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool is_instruction = graph.node_type[i] == ProgramlGraph::NodeType::kInstruction;
    (is_instruction ? of_instructions : of_others).push_back(texts[i]);
  }
  EXPECT_EQ(of_instructions, instructions);
  EXPECT_EQ(of_others, (std::vector<std::string>{
                           "struct %2", "i32 %a", "i32 %3", "i32 %3", "ptr %p",       // first
                           "i32 %next", "i32 %i", "i32 %next", "i1 %done", "i32 %x",  // second
                           "i32 5", "@g = global i32 7, !type !0", "i32 3", "i32 0", "i32 9"}));
}

}  // namespace
}  // namespace loopfleet::worker
