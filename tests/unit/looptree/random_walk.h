#pragma once
// Random walks for property tests, seeded so that failures can be reproduced.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/text/text.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {

inline constexpr std::array kAllRuleSets = {RuleSet::kStructural, RuleSet::kLoopNest,
                                            RuleSet::kLoopNest58};

inline std::string_view NameOf(RuleSet rules) {
  switch (rules) {
    case RuleSet::kStructural: return "structural";
    case RuleSet::kLoopNest: return "loop_nest";
    case RuleSet::kLoopNest58: return "loop_nest58";
  }
  return "";
}

// AllKinds, the named programs, and programs with fractional results.
inline std::vector<NamedBenchmark> KindsToWalk() {
  std::vector<NamedBenchmark> kinds = AllKinds();
  for (const char* name :
       {"positive_product5_4_6", "positive_product_c5_4_6", "mmbias4_6_5", "twomm3_4_5_2",
        "chain6_9", "reduce_add5_7", "reduce_max7_5", "shift4_11", "conv1d14_3"}) {
    kinds.push_back({name, Opened(std::string("benchmark://program-v0/") + name)});
  }
  kinds.push_back({"chain",  // elementwise operations in a row
                   WholeLoops({.dims = {{"m", 6}, {"n", 10}},
                               .nodes = {{.op = Op::kRead, .dims = {0, 1}},
                                         {.op = Op::kExp, .inputs = {0}, .dims = {0, 1}},
                                         {.op = Op::kSqrt, .inputs = {1}, .dims = {0, 1}},
                                         {.op = Op::kReciprocal, .inputs = {2}, .dims = {0, 1}},
                                         {.op = Op::kDivide, .inputs = {0, 3}, .dims = {0, 1}},
                                         {.op = Op::kCopy, .inputs = {4}, .dims = {1, 0}},
                                         {.op = Op::kWrite, .inputs = {5}, .dims = {1, 0}}}})});
  kinds.push_back(
      {"own_functions",
       WholeLoops({.dims = {{"m", 4}, {"n", 9}},
                   .nodes = {{.op = Op::kRead, .dims = {0, 1}},
                             {.op = Op::kRead, .dims = {0, 1}},
                             {.op = Op::kGreater, .inputs = {0, 1}, .dims = {0, 1}},
                             {.op = Op::kGreaterEqual, .inputs = {0, 1}, .dims = {0, 1}},
                             {.op = Op::kEqual, .inputs = {0, 1}, .dims = {0, 1}},
                             {.op = Op::kTanh, .inputs = {0}, .dims = {0, 1}},
                             {.op = Op::kErf, .inputs = {5}, .dims = {0, 1}},
                             {.op = Op::kSin, .inputs = {1}, .dims = {0, 1}},
                             {.op = Op::kCos, .inputs = {1}, .dims = {0, 1}},
                             {.op = Op::kSelect, .inputs = {2, 6, 7}, .dims = {0, 1}},
                             {.op = Op::kAdd, .inputs = {3, 4, 8, 9}, .dims = {0, 1}},
                             {.op = Op::kFloor, .inputs = {10}, .dims = {0, 1}},
                             {.op = Op::kCeil, .inputs = {6}, .dims = {0, 1}},
                             {.op = Op::kRound, .inputs = {7}, .dims = {0, 1}},
                             {.op = Op::kSign, .inputs = {8}, .dims = {0, 1}},
                             {.op = Op::kAbs, .inputs = {10}, .dims = {0, 1}},
                             {.op = Op::kPower, .inputs = {15, 0}, .dims = {0, 1}},
                             {.op = Op::kAdd, .inputs = {11, 12, 13, 14}, .dims = {0}},
                             {.op = Op::kWrite, .inputs = {16}, .dims = {0, 1}},
                             {.op = Op::kWrite, .inputs = {17}, .dims = {0}}}})});
  return kinds;
}

// Every action of dialect agent except undo. Moves occur several times, because a walk that only
// splits soon gets stuck.
inline std::vector<Action> AgentActions() {
  return {Up{},
          Down{},
          Down{},
          Down{},
          SwapUp{},
          SwapDown{},
          SwapDown{},
          Split{2},
          Split{3},
          Split{4},
          Split{5},
          Split{7},
          Merge{},
          Merge{},
          Unroll{},
          Vectorize{},
          Split{1} /* has no name, but the wire can carry it */,
          Dummy{},
          MergeAllLoops{}};
}

inline std::vector<Action> SimpleActions() {
  return {ToggleMode{}, ToggleMode{}, Up{}, Up{}, Up{}, Down{}, ToggleThread{}, IdleSplit{}};
}

inline const Action& Drawn(const std::vector<Action>& actions, SplitMix64& random) {
  return actions[random.Below(actions.size())];
}

// Everything observable about a walk.
inline std::pair<std::string, TreeRef> Seen(const AgentWalk& walk) {
  return {IrTextOf(walk.tree()) + TreeText(walk.tree(), {}), walk.cursor()};
}

// The walk after `steps` random actions; illegal ones are skipped.
inline AgentWalk Walked(const Benchmark& benchmark, RuleSet rules, int steps, SplitMix64& random) {
  const auto actions = AgentActions();
  AgentWalk walk(benchmark, rules);
  for (int step = 0; step < steps; ++step) {
    static_cast<void>(walk.Apply(Drawn(actions, random)));
  }
  return walk;
}

inline LoopTree WalkedSimple(const Benchmark& benchmark, int steps, SplitMix64& random) {
  const auto actions = SimpleActions();
  SimpleWalk walk(benchmark);
  for (int step = 0; step < steps; ++step) {
    const auto applied = walk.Apply(Drawn(actions, random));
    LF_CHECK(applied.has_value(), "{}", applied.error().message);
  }
  auto tree = walk.Tree();
  LF_CHECK(tree.has_value(), "{}", tree.error().message);
  return *std::move(tree);
}

}  // namespace loopfleet::looptree
