#pragma once
// Small programs of every kind, with sizes that leave tails.

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/program/program_facts.h"

namespace loopfleet::looptree {

// Each operation gets one loop per dimension, in the order of their numbers; reads, views and
// constants get none.
inline Benchmark WholeLoops(Program program) {
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    if (program.nodes[id].op == Op::kRead) program.inputs.push_back(id);
    if (program.nodes[id].op == Op::kWrite) program.outputs.push_back(id);
  }
  Schedule schedule(program.nodes.size());
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    const Node& node = program.nodes[id];
    if (node.op == Op::kRead || node.op == Op::kView || node.op == Op::kConstant) continue;
    DimSet dims;
    for (const DimId dim : node.dims) dims.Add(dim);
    for (const DimId dim : program.ReducedDims(id)) dims.Add(dim);
    for (DimId dim = 0; dim < program.dims.size(); ++dim) {
      if (dims.Has(dim)) schedule[id].loops.push_back({.dim = dim, .size = program.dims[dim].size});
    }
  }
  auto tree =
      LoopTree::Build(std::make_shared<const Program>(std::move(program)), std::move(schedule));
  LF_CHECK(tree.has_value(), "{}", tree.error().message);
  return Benchmark{.start = *std::move(tree)};
}

inline Benchmark Opened(const std::string& uri) {
  auto benchmark = OpenBenchmark(BenchmarkUri{uri});
  LF_CHECK(benchmark.has_value(), "{}", benchmark.error().message);
  return *std::move(benchmark);
}

struct NamedBenchmark {
  std::string name;
  Benchmark benchmark;
};

inline std::vector<NamedBenchmark> AllKinds() {
  std::vector<NamedBenchmark> kinds;
  kinds.push_back({"matmul", Opened("benchmark://mm-v0/mm7_5_9")});
  kinds.push_back({"matmul_even", Opened("benchmark://mm-v0/mm8_16_4")});
  kinds.push_back({"conv2d", Opened("benchmark://conv-v0/conv2_3_6_5__2_3_3_2")});
  kinds.push_back(
      {"add", WholeLoops({.dims = {{"m", 9}, {"n", 13}},
                          .nodes = {{.op = Op::kRead, .dims = {0, 1}},
                                    {.op = Op::kRead, .dims = {0, 1}},
                                    {.op = Op::kAdd, .inputs = {0, 1}, .dims = {0, 1}},
                                    {.op = Op::kWrite, .inputs = {2}, .dims = {1, 0}}}})});
  kinds.push_back({"chained_reductions",  // max over k of (sum over n), then the sum of all
                   WholeLoops({.dims = {{"m", 5}, {"k", 6}, {"n", 7}},
                               .nodes = {{.op = Op::kRead, .dims = {0, 1, 2}},
                                         {.op = Op::kAdd, .inputs = {0}, .dims = {0, 1}},
                                         {.op = Op::kMax, .inputs = {1}, .dims = {0}},
                                         {.op = Op::kWrite, .inputs = {2}, .dims = {0}},
                                         {.op = Op::kAdd, .inputs = {2}, .dims = {}},
                                         {.op = Op::kWrite, .inputs = {4}, .dims = {}}}})});
  kinds.push_back({"row_normalised",  // x - min(x) over each row: a result read in two nests
                   WholeLoops({.dims = {{"m", 5}, {"n", 11}},
                               .nodes = {{.op = Op::kRead, .dims = {0, 1}},
                                         {.op = Op::kAbs, .inputs = {0}, .dims = {0, 1}},
                                         {.op = Op::kMin, .inputs = {1}, .dims = {0}},
                                         {.op = Op::kSubtract, .inputs = {1, 2}, .dims = {0, 1}},
                                         {.op = Op::kWrite, .inputs = {3}, .dims = {0, 1}}}})});
  kinds.push_back(
      {"foreign_reduction",  // the sum over n is placed inside another operation's k loop
       WholeLoops({.dims = {{"m", 4}, {"n", 6}, {"k", 3}},
                   .nodes = {{.op = Op::kRead, .dims = {0, 1, 2}},
                             {.op = Op::kRead, .dims = {0, 1}},
                             {.op = Op::kAbs, .inputs = {0}, .dims = {0, 1, 2}},
                             {.op = Op::kAdd, .inputs = {1}, .dims = {0}},
                             {.op = Op::kMultiply, .inputs = {2, 3}, .dims = {0, 1, 2}},
                             {.op = Op::kWrite, .inputs = {4}, .dims = {0, 1, 2}}}})});
  kinds.push_back({"product_and_minimum",
                   WholeLoops({.dims = {{"m", 6}, {"k", 5}},
                               .nodes = {{.op = Op::kRead, .dims = {0, 1}},
                                         {.op = Op::kMultiply, .inputs = {0}, .dims = {0}},
                                         {.op = Op::kMin, .inputs = {0}, .dims = {1}},
                                         {.op = Op::kWrite, .inputs = {1}, .dims = {0}},
                                         {.op = Op::kWrite, .inputs = {2}, .dims = {1}}}})});
  kinds.push_back({"two_matmuls",
                   WholeLoops({.dims = {{"m", 4}, {"k", 5}, {"n", 6}, {"p", 3}},
                               .nodes = {{.op = Op::kRead, .dims = {0, 1}},
                                         {.op = Op::kRead, .dims = {1, 2}},
                                         {.op = Op::kRead, .dims = {2, 3}},
                                         {.op = Op::kMultiply, .inputs = {0, 1}, .dims = {0, 1, 2}},
                                         {.op = Op::kAdd, .inputs = {3}, .dims = {0, 2}},
                                         {.op = Op::kMultiply, .inputs = {4, 2}, .dims = {0, 2, 3}},
                                         {.op = Op::kAdd, .inputs = {5}, .dims = {0, 3}},
                                         {.op = Op::kWrite, .inputs = {6}, .dims = {0, 3}}}})});
  kinds.push_back({"viewed_intermediate",  // a window over an intermediate result
                   WholeLoops({.dims = {{"i", 11}, {"o", 8}, {"k", 4}},
                               .nodes = {{.op = Op::kRead, .dims = {0}},
                                         {.op = Op::kNegate, .inputs = {0}, .dims = {0}},
                                         {.op = Op::kView,
                                          .inputs = {1},
                                          .dims = {1, 2},
                                          .view = {{0, {{1, 1}, {2, 1}}, 0}}},
                                         {.op = Op::kMax, .inputs = {2}, .dims = {1}},
                                         {.op = Op::kWrite, .inputs = {3}, .dims = {1}}}})});
  kinds.push_back({"bias",  // a matrix product plus one number per column
                   WholeLoops({.dims = {{"m", 5}, {"k", 7}, {"n", 6}},
                               .nodes = {{.op = Op::kRead, .dims = {0, 1}},
                                         {.op = Op::kRead, .dims = {1, 2}},
                                         {.op = Op::kRead, .dims = {2}},
                                         {.op = Op::kMultiply, .inputs = {0, 1}, .dims = {0, 1, 2}},
                                         {.op = Op::kAdd, .inputs = {3}, .dims = {0, 2}},
                                         {.op = Op::kAdd, .inputs = {4, 2}, .dims = {0, 2}},
                                         {.op = Op::kWrite, .inputs = {5}, .dims = {0, 2}}}})});
  kinds.push_back(
      {"view_of_view",  // every second element, backwards, then a window over them
       WholeLoops(
           {.dims = {{"i", 21}, {"j", 10}, {"o", 8}, {"k", 3}},
            .nodes = {{.op = Op::kRead, .dims = {0}},
                      {.op = Op::kView, .inputs = {0}, .dims = {1}, .view = {{0, {{1, -2}}, 19}}},
                      {.op = Op::kView,
                       .inputs = {1},
                       .dims = {2, 3},
                       .view = {{1, {{2, 1}, {3, 1}}, 0}}},
                      {.op = Op::kAdd, .inputs = {2}, .dims = {2}},
                      {.op = Op::kWrite, .inputs = {3}, .dims = {2}}}})});
  kinds.push_back(
      {"padded",  // two elements before and one after are -infinity, then a window over them
       WholeLoops({.dims = {{"i", 9}, {"p", 12}, {"o", 10}, {"k", 3}},
                   .nodes = {{.op = Op::kRead, .dims = {0}},
                             {.op = Op::kNegate, .inputs = {0}, .dims = {0}},
                             {.op = Op::kView,
                              .inputs = {1},
                              .dims = {1},
                              .view = {{0, {{1, 1}}, -2, 1, true}},
                              .outside = -std::numeric_limits<double>::infinity()},
                             {.op = Op::kView,
                              .inputs = {2},
                              .dims = {2, 3},
                              .view = {{1, {{2, 1}, {3, 1}}, 0}}},
                             {.op = Op::kMax, .inputs = {3}, .dims = {2}},
                             {.op = Op::kWrite, .inputs = {4}, .dims = {2}}}})});
  kinds.push_back({"spread",  // x[u / 2], -1 where u is odd, repeated along r
                   WholeLoops({.dims = {{"i", 5}, {"u", 9}, {"r", 4}},
                               .nodes = {{.op = Op::kRead, .dims = {0}},
                                         {.op = Op::kRead, .dims = {1, 2}},
                                         {.op = Op::kView,
                                          .inputs = {0},
                                          .dims = {1, 2},
                                          .view = {{0, {{1, 1}}, 0, 2, true}},
                                          .outside = -1},
                                         {.op = Op::kMultiply, .inputs = {1, 2}, .dims = {1, 2}},
                                         {.op = Op::kWrite, .inputs = {3}, .dims = {1, 2}}}})});
  kinds.push_back(
      {"concatenated",  // a of 4 rows, then b of 3, each shifted by a row; twice
       WholeLoops({.dims = {{"a", 4}, {"b", 3}, {"c", 7}, {"n", 5}, {"s", 7}},
                   .nodes = {{.op = Op::kRead, .dims = {0, 3}},
                             {.op = Op::kRead, .dims = {1, 3}},
                             {.op = Op::kView,
                              .inputs = {0},
                              .dims = {2, 3},
                              .view = {{0, {{2, 1}}, 0, 1, true}, {3, {{3, 1}}, 0, 1, true}}},
                             {.op = Op::kView,
                              .inputs = {1},
                              .dims = {2, 3},
                              .view = {{1, {{2, 1}}, -4, 1, true}, {3, {{3, 1}}}}},
                             {.op = Op::kAdd, .inputs = {2, 3}, .dims = {2, 3}},
                             {.op = Op::kView,
                              .inputs = {4},
                              .dims = {4, 3},
                              .view = {{2, {{4, 1}}, 1, 1, true}, {3, {{3, 1}}}},
                              .outside = 9},
                             {.op = Op::kConstant, .constant = 2},
                             {.op = Op::kMultiply, .inputs = {5, 6}, .dims = {4, 3}},
                             {.op = Op::kWrite, .inputs = {7}, .dims = {4, 3}}}})});
  return kinds;
}

// Small integers, so that float32 is exact.
inline std::vector<Tensor> IntegerInputs(const Program& program, SplitMix64& random) {
  std::vector<Tensor> inputs;
  for (const NodeId id : program.inputs) {
    Tensor& input = inputs.emplace_back(static_cast<std::size_t>(program.ElementCount(id)));
    for (float& element : input) element = static_cast<float>(random.Below(7)) - 3.0F;
  }
  return inputs;
}

inline std::vector<Tensor> FractionInputs(const Program& program, SplitMix64& random) {
  std::vector<Tensor> inputs;
  for (const NodeId id : program.inputs) {
    Tensor& input = inputs.emplace_back(static_cast<std::size_t>(program.ElementCount(id)));
    for (float& element : input) element = static_cast<float>(random.Below(1 << 20)) / 1e6F - 0.5F;
  }
  return inputs;
}

}  // namespace loopfleet::looptree
