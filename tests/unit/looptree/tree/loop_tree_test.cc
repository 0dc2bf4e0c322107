#include "common/looptree/tree/loop_tree.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

Checked<LoopTree> Rescheduled(const LoopTree& tree, NodeId node, std::vector<LoopSpec> loops,
                              const Limits& limits = {}) {
  Schedule schedule = tree.schedule();
  schedule[node].loops = std::move(loops);
  return LoopTree::Build(tree.shared_program(), std::move(schedule), limits);
}

RejectionCode CodeOf(const Checked<LoopTree>& tree) {
  EXPECT_FALSE(tree.has_value());
  return tree ? RejectionCode::kUnsupported : tree.error().code;
}

const LoopTree& Mm() {
  static const LoopTree tree = Opened("benchmark://mm-v0/mm8_4_6").start;  // m 8, k 6, n 4
  return tree;
}
constexpr DimId kM = 0, kK = 1, kN = 2;

TEST(LoopTree, ShapeOfAMatrixProduct) {
  const auto nodes = Mm().nodes();
  ASSERT_EQ(nodes.size(), 7u);
  EXPECT_EQ(Mm().Children(std::nullopt), (std::vector<TreeRef>{0}));
  EXPECT_EQ(Mm().Children(0), (std::vector<TreeRef>{1, 5}));
  EXPECT_EQ(nodes[0].end, 7u);
  EXPECT_EQ(nodes[1].end, 5u);
  EXPECT_EQ(Mm().LeafOf(0), std::nullopt);
  EXPECT_EQ(Mm().LeafOf(4), 6u);
  EXPECT_EQ(Mm().ScopeOf(2), 2u);  // the product: one element inside n
  EXPECT_EQ(Mm().ScopeOf(3), 0u);  // the sum: a row inside m
  EXPECT_EQ(Mm().BufferExtent(3, kM), 1);
  EXPECT_EQ(Mm().BufferExtent(3, kN), 4);
  EXPECT_EQ(Mm().ScratchBytes(), (1u + 4u) * 4);
  EXPECT_EQ(Mm().ReadersOf(0), (std::vector<NodeId>{2}));
}

TEST(LoopTree, LoopsMustCoverExactly) {
  for (const auto& loops : std::vector<std::vector<LoopSpec>>{
           {},
           {{.dim = kM, .size = 8}},
           {{.dim = kM, .size = 8}, {.dim = kN, .size = 5}},
           {{.dim = kM, .size = 8}, {.dim = kN, .size = 4}, {.dim = kN, .size = 2}},
           {{.dim = kM, .size = 8}, {.dim = kN, .size = 4}, {.dim = kK, .size = 6}},
           {{.dim = kM, .size = 8}, {.dim = 9, .size = 4}},
           {{.dim = kM, .size = 0}, {.dim = kN, .size = 4}},
           {{.dim = kM, .size = -8}, {.dim = kN, .size = 4}},
           {{.dim = kM, .size = 7, .tail = 1},
            {.dim = kN, .size = 4}},  // a tail of whole iterations
           {{.dim = kM, .size = 2, .tail = -2}, {.dim = kM, .size = 5}, {.dim = kN, .size = 4}},
           {{.dim = kM, .size = INT64_MAX}, {.dim = kM, .size = INT64_MAX}, {.dim = kN, .size = 4}},
       }) {
    EXPECT_EQ(CodeOf(Rescheduled(Mm(), 4, loops)), RejectionCode::kInvalidBenchmark);
  }
  EXPECT_TRUE(
      Rescheduled(
          Mm(), 4,
          {{.dim = kN, .size = 1, .tail = 1}, {.dim = kM, .size = 8}, {.dim = kN, .size = 3}})
          .has_value());
}

TEST(LoopTree, Limits) {
  EXPECT_EQ(CodeOf(Rescheduled(Mm(), 4, Mm().schedule()[4].loops, {.tree_nodes = 6})),
            RejectionCode::kLimitTree);
  EXPECT_EQ(CodeOf(Rescheduled(Mm(), 4, Mm().schedule()[4].loops, {.tree_depth = 2})),
            RejectionCode::kLimitTree);
  EXPECT_EQ(CodeOf(Rescheduled(Mm(), 4, Mm().schedule()[4].loops, {.footprint_bytes = 100})),
            RejectionCode::kLimitFootprint);
  EXPECT_EQ(CodeOf(Rescheduled(Mm(), 4, Mm().schedule()[4].loops, {.flop_count = 100})),
            RejectionCode::kLimitFlops);
  std::vector<LoopSpec> deep(40, {.dim = kM, .size = 1});
  deep.push_back({.dim = kM, .size = 8});
  deep.push_back({.dim = kN, .size = 4});
  EXPECT_EQ(CodeOf(Rescheduled(Mm(), 4, deep, {.tree_depth = 100})), RejectionCode::kLimitTree);
}

TEST(LoopTree, ScratchCountsTowardsTheFootprint) {
  // The product is outside the sum's nest, so its buffer holds all of m, k, n.
  const LoopTree tree = Opened("benchmark://mm-v0/mm1024_1024_1024").start;
  const auto apart = Rescheduled(
      tree, 3, {{.dim = kN, .size = 1024}, {.dim = kK, .size = 1024}, {.dim = kM, .size = 1024}});
  EXPECT_EQ(CodeOf(apart), RejectionCode::kLimitFootprint);
}

Program WithDims(std::vector<Dim> dims) {
  Program program;
  program.dims = std::move(dims);
  program.nodes = {{.op = Op::kRead, .dims = {0}},
                   {.op = Op::kExp, .inputs = {0}, .dims = {0}},
                   {.op = Op::kWrite, .inputs = {1}, .dims = {0}}};
  program.inputs = {0};
  program.outputs = {2};
  return program;
}

RejectionCode CodeOf(const Program& program) {
  Schedule schedule(program.nodes.size());
  for (NodeId id = 1; id < program.nodes.size(); ++id) {
    schedule[id].loops = {{.dim = 0, .size = program.dims.empty() ? 1 : program.dims[0].size}};
  }
  return CodeOf(LoopTree::Build(std::make_shared<const Program>(program), schedule));
}

TEST(LoopTree, HostilePrograms) {
  EXPECT_EQ(CodeOf(WithDims({{"m", 0}})), RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf(WithDims({{"m", -1}})), RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf(WithDims({{"m", INT64_MAX}})), RejectionCode::kLimitFlops);
  EXPECT_EQ(CodeOf(WithDims({{"m", std::int64_t{1} << 31}})), RejectionCode::kLimitFootprint);
  EXPECT_EQ(CodeOf(WithDims({{"\xff", 4}})), RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf(WithDims({{"", 4}})), RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf(WithDims({{"m", 4}, {"m", 5}})), RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf(WithDims(std::vector<Dim>(65, {"m", 4}))), RejectionCode::kLimitTree);
  EXPECT_EQ(CodeOf(WithDims({})), RejectionCode::kInvalidBenchmark);
  Program cyclic = WithDims({{"m", 4}});
  cyclic.nodes[1] = {.op = Op::kAdd, .inputs = {0, 1}, .dims = {0}};
  EXPECT_EQ(CodeOf(cyclic), RejectionCode::kInvalidBenchmark);
  Program dangling = WithDims({{"m", 4}});
  dangling.nodes[1].inputs = {7};
  EXPECT_EQ(CodeOf(dangling), RejectionCode::kInvalidBenchmark);
  Program of_write = WithDims({{"m", 4}});
  of_write.nodes[1].inputs = {2};
  EXPECT_EQ(CodeOf(of_write), RejectionCode::kInvalidBenchmark);
  Program reducing = WithDims({{"m", 4}});
  reducing.nodes[1] = {.op = Op::kExp, .inputs = {0}, .dims = {}};
  EXPECT_EQ(CodeOf(reducing), RejectionCode::kInvalidBenchmark);
  Program named = WithDims({{"m", 4}});
  named.nodes[1].op = Op::kName;
  EXPECT_EQ(CodeOf(named), RejectionCode::kUnsupported);
}

TEST(LoopTree, ViewsStayInsideTheirInput) {
  const auto window = [](std::int64_t out, std::int64_t coefficient, std::int64_t constant) {
    Program program;
    program.dims = {{"i", 8}, {"o", out}};
    program.nodes = {
        {.op = Op::kRead, .dims = {0}},
        {.op = Op::kView, .inputs = {0}, .dims = {1}, .view = {{0, {{1, coefficient}}, constant}}},
        {.op = Op::kWrite, .inputs = {1}, .dims = {1}}};
    program.inputs = {0};
    program.outputs = {2};
    Schedule schedule = {{}, {}, {{{.dim = 1, .size = out}}, 0}};
    return LoopTree::Build(std::make_shared<const Program>(program), schedule);
  };
  EXPECT_TRUE(window(8, 1, 0).has_value());
  EXPECT_TRUE(window(8, -1, 7).has_value());  // reversed
  EXPECT_TRUE(window(4, 2, 1).has_value());
  EXPECT_EQ(CodeOf(window(9, 1, 0)), RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf(window(8, 1, 1)), RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf(window(8, -1, 6)), RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf(window(4, INT64_MAX, 0)), RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf(window(4, INT64_MIN, INT64_MAX)), RejectionCode::kInvalidBenchmark);
}

TEST(LoopTree, GuardedViewsAreBounded) {
  const auto guarded = [](std::vector<ViewIndex> first, std::vector<ViewIndex> second,
                          double outside = 0) {
    Program program;
    program.dims = {{"i", 8}, {"o", 8}, {"p", 8}};
    program.nodes = {
        {.op = Op::kRead, .dims = {0}},
        {.op = Op::kView, .inputs = {0}, .dims = {1}, .view = std::move(first), .outside = outside},
        {.op = Op::kView, .inputs = {1}, .dims = {2}, .view = std::move(second)},
        {.op = Op::kWrite, .inputs = {2}, .dims = {2}}};
    program.inputs = {0};
    program.outputs = {3};
    Schedule schedule = {{}, {}, {}, {{{.dim = 2, .size = 8}}, 0}};
    return LoopTree::Build(std::make_shared<const Program>(program), schedule);
  };
  const ViewIndex same{1, {{2, 1}}};
  EXPECT_TRUE(guarded({{0, {{1, 3}}, -5, 2, true}}, {same}).has_value());
  EXPECT_EQ(CodeOf(guarded({{0, {{1, 3}}, -5, 2, false}}, {same})),
            RejectionCode::kInvalidBenchmark);
  for (const std::int64_t divisor : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(CodeOf(guarded({{0, {{1, 1}}, 0, divisor, true}}, {same})),
              RejectionCode::kInvalidBenchmark);
  }
  for (const std::int64_t far : {INT64_MAX, INT64_MIN, std::int64_t{1} << 32}) {
    EXPECT_EQ(CodeOf(guarded({{0, {{1, far}}, 0, 1, true}}, {same})),
              RejectionCode::kInvalidBenchmark);
    EXPECT_EQ(CodeOf(guarded({{0, {{1, 1}}, far, 1, true}}, {same})),
              RejectionCode::kInvalidBenchmark);
  }
  // Each of the two is within bounds, but not both together.
  const ViewIndex far_out{0, {{1, 1 << 27}}, 0, 1, true};
  const ViewIndex far_in{1, {{2, 1 << 27}}, 0, 1, true};
  EXPECT_TRUE(guarded({far_out}, {same}).has_value());
  EXPECT_TRUE(guarded({{0, {{1, 1}}}}, {far_in}).has_value());
  EXPECT_EQ(CodeOf(guarded({far_out}, {far_in})), RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf(guarded({{0, {{1, 1}}, 1, 1, true}}, {same}, std::nan(""))),
            RejectionCode::kInvalidBenchmark);
  const auto beyond = guarded({{0, {{1, 1}}, 1, 1, true}}, {same}, 1e39);
  ASSERT_FALSE(beyond.has_value());
  EXPECT_NE(beyond.error().message.find("nearest: 3.40"), std::string::npos)
      << beyond.error().message;
}

TEST(LoopTree, WhatChangesNothingIsDropped) {
  Program program;
  program.dims = {{"i", 8}, {"o", 4}};
  program.nodes = {{.op = Op::kRead, .dims = {0}},
                   {.op = Op::kView,
                    .inputs = {0},
                    .dims = {1},
                    .view = {{0, {{1, 2}}, 1, 1, true}},
                    .outside = 7},
                   {.op = Op::kConstant, .constant = 0.1},
                   {.op = Op::kMultiply, .inputs = {1, 2}, .dims = {1}},
                   {.op = Op::kWrite, .inputs = {3}, .dims = {1}}};
  const LoopTree tree = WholeLoops(program).start;
  EXPECT_EQ(tree.program().nodes[1].view, (std::vector<ViewIndex>{{0, {{1, 2}}, 1}}));
  EXPECT_EQ(tree.program().nodes[1].outside, 0);
  EXPECT_EQ(tree.program().nodes[2].constant, static_cast<double>(0.1F));
  program.inputs = {0};
  program.outputs = {4};
  EXPECT_EQ(ProgramKeyOf(tree.program()), ProgramKeyOf(program));
}

TEST(LoopTree, OperationsCountTheirInputs) {
  const auto with = [](Op op, std::size_t inputs) {
    Program program;
    program.dims = {{"m", 4}};
    program.nodes = {{.op = Op::kRead, .dims = {0}},
                     {.op = op, .inputs = std::vector<NodeId>(inputs, 0), .dims = {0}},
                     {.op = Op::kWrite, .inputs = {1}, .dims = {0}}};
    program.inputs = {0};
    program.outputs = {2};
    const NodeSchedule loops{{{.dim = 0, .size = 4}}, 0};
    return LoopTree::Build(std::make_shared<const Program>(program), {{}, loops, loops})
        .has_value();
  };
  for (const Op op :
       {Op::kTanh, Op::kErf, Op::kSin, Op::kCos, Op::kFloor, Op::kCeil, Op::kRound, Op::kSign}) {
    EXPECT_TRUE(with(op, 1) && !with(op, 0) && !with(op, 2)) << OpName(op);
  }
  for (const Op op : {Op::kGreater, Op::kGreaterEqual, Op::kEqual, Op::kPower}) {
    EXPECT_TRUE(with(op, 2) && !with(op, 1) && !with(op, 3)) << OpName(op);
  }
  EXPECT_TRUE(with(Op::kSelect, 3) && !with(Op::kSelect, 2) && !with(Op::kSelect, 4));
}

// A view reads element 3 in every iteration of the loop that computes the elements one by one.
TEST(LoopTree, NothingIsReadBeforeItIsComputed) {
  Program program;
  program.dims = {{"i", 8}};
  program.nodes = {{.op = Op::kRead, .dims = {0}},
                   {.op = Op::kExp, .inputs = {0}, .dims = {0}},
                   {.op = Op::kView, .inputs = {1}, .dims = {}, .view = {{0, {}, 3}}},
                   {.op = Op::kAdd, .inputs = {1, 2}, .dims = {0}},
                   {.op = Op::kWrite, .inputs = {3}, .dims = {0}}};
  program.inputs = {0};
  program.outputs = {4};
  const NodeSchedule whole{{{.dim = 0, .size = 8}}, 0};
  const auto tree =
      LoopTree::Build(std::make_shared<const Program>(program), {{}, whole, {}, whole, whole});
  EXPECT_EQ(CodeOf(tree), RejectionCode::kUnsupported);
}

TEST(LoopTree, PrioritiesDecideAmongReadyOperations) {
  Program program;
  program.dims = {{"i", 4}};
  program.nodes = {{.op = Op::kRead, .dims = {0}},
                   {.op = Op::kExp, .inputs = {0}, .dims = {0}},
                   {.op = Op::kAbs, .inputs = {0}, .dims = {0}},
                   {.op = Op::kAdd, .inputs = {1, 2}, .dims = {0}},
                   {.op = Op::kWrite, .inputs = {3}, .dims = {0}}};
  program.inputs = {0};
  program.outputs = {4};
  const auto leaves = [&](double exp_priority) {
    Schedule schedule(5, NodeSchedule{{{.dim = 0, .size = 4}}, 0});
    schedule[0].loops.clear();
    schedule[1].priority = exp_priority;
    const auto tree = LoopTree::Build(std::make_shared<const Program>(program), schedule);
    return std::pair(*tree->LeafOf(1), *tree->LeafOf(2));
  };
  EXPECT_EQ(leaves(0), (std::pair<TreeRef, TreeRef>(2, 1)));  // reverse order of first use
  EXPECT_EQ(leaves(1), (std::pair<TreeRef, TreeRef>(1, 2)));
}

}  // namespace
}  // namespace loopfleet::looptree
