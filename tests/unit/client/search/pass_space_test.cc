#include "client/search/pass_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

#include "client/search/open_space.h"
#include "client/search/search.h"
#include "client/search/strategy_table.h"
#include "common/llvm_passes/pass_sequence.h"

namespace loopfleet::client {
namespace {

SharedSpace Open(const std::string& uri) {
  return OpenSearchSpace(looptree::BenchmarkUri{uri}).value();
}

TEST(PassSpace, MakesOnlySequencesThatAWorkerTakes) {
  const SharedSpace space = Open("generator://csmith-v0/7");
  SplitMix64 random(1);
  std::set<ContentKey> keys;
  std::size_t longest = 0;
  Candidate at = space->Start();
  for (int i = 0; i < 500; ++i) {
    const Candidate walk = space->RandomWalk(10, random);
    at = space->Cross(space->Mutate(space->RandomStep(at, random), random), walk, random);
    for (const Candidate& each : {walk, at}) {
      EXPECT_TRUE(passes::CanonicalTexts(each.passes));
      EXPECT_LE(each.passes.size(), 100U);
      EXPECT_TRUE(each.steps.empty() && each.actions.empty());
      keys.insert(each.key);
    }
    longest = std::max(longest, walk.passes.size());
  }
  EXPECT_GT(keys.size(), 900U);
  EXPECT_EQ(longest, 40U);
}

TEST(PassSpace, EachPassIsANeighbour) {
  const SharedSpace space = Open("benchmark://small-v0/qsort");
  std::set<ContentKey> keys = {space->Start().key};
  for (const Candidate& next : space->Neighbours(space->Start())) {
    EXPECT_EQ(next.length(), 1U);
    EXPECT_TRUE(keys.insert(next.key).second);
  }
  EXPECT_EQ(keys.size(), 119U);
  EXPECT_NE(Open("benchmark://small-v0/bitcount")->Start().key, space->Start().key);
}

TEST(PassSpace, RefusesWhatIsNoProgram) {
  const auto space = OpenSearchSpace(looptree::BenchmarkUri{"benchmark://small-v0/qsrt"});
  ASSERT_FALSE(space);
  EXPECT_NE(space.error().message.find("nearest: qsort"), std::string::npos);
  EXPECT_FALSE(PassSpace::Open(looptree::IrText{"v:a"}));
}

// Three passes in a row make the program small; each alone does a little, one breaks it.
class MadeUpPasses : public Evaluator {
 public:
  static double InstructionsAfter(const std::vector<std::string>& passes) {
    double count = 1000;
    std::string before;
    for (const std::string& pass : passes) {
      if (pass == "-mem2reg") count -= before == "-sroa" ? 1 : 200;
      if (pass == "-gvn" && before == "-mem2reg") count -= 300;
      if (pass == "-dce" && before == "-gvn") count -= 400;
      before = pass;
    }
    return std::max(count, 50.0);
  }
  Answer<void> Send(std::span<const Trial> trials) override {
    std::vector<Outcome> outcomes;
    for (const Trial& trial : trials) {
      Outcome& outcome = outcomes.emplace_back();
      outcome.evaluation.conditions = Conditions{};
      const std::vector<std::string>& passes = trial.candidate.passes;
      if (std::ranges::find(passes, "-scalarizer") != passes.end()) {
        outcome.evaluation.verdict = Failure{.code = FailureCode::kCompileError};
        continue;
      }
      Observed observed;
      observed.values["IrInstructionCount"] = InstructionsAfter(passes);
      observed.values["IrInstructionCountOz"] = 120.0;
      outcome.evaluation.verdict = std::move(observed);
    }
    sent_.push_back(std::move(outcomes));
    return {};
  }
  Answer<std::vector<Outcome>> Receive() override {
    auto oldest = std::move(sent_.front());
    sent_.pop_front();
    return oldest;
  }

 private:
  std::deque<std::vector<Outcome>> sent_;
};

class EachStrategyOverPasses : public testing::TestWithParam<std::string> {};

TEST_P(EachStrategyOverPasses, FindsShortSequencesAndKeepsToTheLimit) {
  MadeUpPasses evaluator;
  const SystemClock clock;
  Search search(evaluator, clock, {.evaluations = 3'000});
  const SharedSpace space = Open("generator://csmith-v0/7");
  search.Add(Exploration(space, FindStrategy(GetParam()).value()->make(space, 3)));
  ASSERT_TRUE(search.Run());
  const Search::Lane& lane = search.lanes().front();
  EXPECT_LE(lane.exploration.evaluations(), 3'000U);
  EXPECT_EQ(lane.exploration.start_cost(), 1000.0);
  EXPECT_EQ(lane.instructions_oz, 120.0);
  EXPECT_GT(lane.exploration.without_figure(), 0U);
  const double best = lane.exploration.best()->cost;
  EXPECT_EQ(best, MadeUpPasses::InstructionsAfter(lane.exploration.best()->candidate.passes));
  EXPECT_LE(best, 800.0);  // at least -mem2reg
  // Greedy ones walk straight there.
  if (GetParam() == "greedy" || GetParam().starts_with("beam")) {
    EXPECT_LE(best, 100.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EachStrategyOverPasses, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const StrategyInfo& one : Strategies()) {
                             if (!one.is_for_loops_only) names.emplace_back(one.name);
                           }
                           return names;
                         }()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace loopfleet::client
