// Every strategy of the table, over a landscape without hardware.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "client/search/search.h"
#include "client/search/strategies/strategies.h"
#include "tests/unit/client/search/landscape.h"

namespace loopfleet::client {
namespace {

const looptree::BenchmarkUri kMatrix{"benchmark://mm-v0/mm64_64_64"};
// Copies two numbers: one loop, so only a few trees.
const looptree::IrText kCopy{
    "v:a\nn:2::0,:::0:0;2;0,::,::\nn:1:0,:0,:::0:0;2;0,::,::\ni:0,\no:1,\n"};

struct Trace {
  std::vector<looptree::TreeKey> asked;
  double best_ns = 0;
  std::vector<CurvePoint> curve;
  bool is_exhausted = false;
};

Trace TraceOf(const looptree::Source& source, std::string_view strategy, std::uint64_t seed,
              std::uint64_t evaluations) {
  LandscapeEvaluator evaluator;
  const SystemClock clock;
  Search search(evaluator, clock, {.evaluations = evaluations, .cut_factor = 0});
  search.Add(Explore(OpenSpace(source), strategy, seed));
  EXPECT_TRUE(search.Run());
  const Search::Lane& lane = search.lanes().front();
  return {.asked = evaluator.asked,
          .best_ns = lane.exploration.best()->cost,
          .curve = lane.exploration.curve(),
          .is_exhausted = lane.is_exhausted};
}

class EachStrategy : public testing::TestWithParam<std::string> {};

TEST_P(EachStrategy, AsksForEachTreeOnceAndKeepsToTheLimit) {
  const Trace trace = TraceOf(kMatrix, GetParam(), 1, 500);
  const std::set<looptree::TreeKey> distinct(trace.asked.begin(), trace.asked.end());
  EXPECT_EQ(distinct.size(), trace.asked.size());
  EXPECT_LE(trace.asked.size(), 500);
  EXPECT_TRUE(trace.is_exhausted || trace.asked.size() == 500);
  EXPECT_EQ(trace.curve.back().best_cost, trace.best_ns);
}

TEST_P(EachStrategy, IsRepeatable) {
  EXPECT_EQ(TraceOf(kMatrix, GetParam(), 7, 400).asked, TraceOf(kMatrix, GetParam(), 7, 400).asked);
}

double MedianBestNs(std::string_view strategy) {
  std::vector<double> best_ns;
  for (std::uint64_t seed = 1; seed <= 9; ++seed) {
    best_ns.push_back(TraceOf(kMatrix, strategy, seed, 300).best_ns);
  }
  std::ranges::nth_element(best_ns, best_ns.begin() + 4);
  return best_ns[4];
}

TEST_P(EachStrategy, ImprovesOnTheStart) {
  const double start_ns = LandscapeNs(OpenSpace(kMatrix)->Start().tree);
  EXPECT_LT(MedianBestNs(GetParam()), 0.75 * start_ns);
}

TEST(Strategies, ThatLearnBeatRandomWalks) {
  const double random_ns = MedianBestNs("random");
  for (const std::string_view learns : {"hill_climbing", "genetic", "guided", "auto"}) {
    EXPECT_LT(MedianBestNs(learns), random_ns) << learns;
  }
}

// Those without an end of their own have new proposals for as long as anybody waits.
TEST(Strategies, DoNotRunDry) {
  for (const std::string_view endless :
       {"random", "hill_climbing", "annealing", "genetic", "mcts"}) {
    EXPECT_FALSE(TraceOf(kMatrix, endless, 3, 3'000).is_exhausted) << endless;
  }
}

TEST_P(EachStrategy, EndsWhenTheSpaceIsExhausted) {
  const Trace trace = TraceOf(kCopy, GetParam(), 1, 1'000'000);
  EXPECT_TRUE(trace.is_exhausted);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const StrategyInfo& one : Strategies()) names.emplace_back(one.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Strategies, EachStrategy, testing::ValuesIn(Names()),
                         [](const auto& param) { return param.param; });

TEST(FindStrategy, NamesTheNearest) {
  EXPECT_EQ(FindStrategy("greedy").value()->name, "greedy");
  EXPECT_EQ(FindStrategy("auto").value()->name, "genetic");
  const auto unknown = FindStrategy("genetics");
  EXPECT_NE(unknown.error().message.find("nearest: genetic"), std::string::npos);
}

// Prefers the trees with the most nodes.
class NodeScorer : public Scorer {
 public:
  std::vector<double> Score(std::span<const Candidate> candidates) override {
    std::vector<double> scores;
    for (const Candidate& one : candidates) {
      scores.push_back(-static_cast<double>(one.tree.nodes().size()));
    }
    return scores;
  }
  void Learn(std::span<const Evaluated> results) override { learned += results.size(); }
  std::size_t learned = 0;
};

TEST(Guided, PassesOnWhatTheScorerPrefers) {
  const SharedSpace space = OpenSpace(kMatrix);
  const auto sum_of_nodes = [](const std::vector<Candidate>& candidates) {
    std::size_t nodes = 0;
    for (const Candidate& one : candidates) nodes += one.tree.nodes().size();
    return nodes;
  };
  auto scorer = std::make_unique<NodeScorer>();
  const NodeScorer& seen = *scorer;
  const auto guided = MakeGuided(MakeRandom(space, 1), std::move(scorer), 1);
  const std::vector<Candidate> chosen = guided->Propose(20);
  EXPECT_EQ(chosen.size(), 20);
  EXPECT_GT(sum_of_nodes(chosen), sum_of_nodes(MakeRandom(space, 1)->Propose(20)) * 5 / 4);
  guided->Tell(std::vector<Evaluated>{{.candidate = chosen.front(), .cost = 1}});
  EXPECT_EQ(seen.learned, 1);
}

TEST(Started, ProposesTheFirstOnesAndThenWhatTheInnerOneDoes) {
  const SharedSpace space = OpenSpace(kMatrix);
  SplitMix64 random(5);
  const std::vector<Candidate> first = {space->RandomWalk(3, random), space->RandomWalk(3, random),
                                        space->RandomWalk(3, random)};
  const auto started = MakeStarted(MakeGenetic(space, 1), first);
  const std::vector<Candidate> two = started->Propose(2);
  ASSERT_EQ(two.size(), 2);
  EXPECT_EQ(two[0].key, first[0].key);
  EXPECT_EQ(two[1].key, first[1].key);
  const std::vector<Candidate> third = started->Propose(2);
  ASSERT_EQ(third.size(), 1);
  EXPECT_EQ(third[0].key, first[2].key);
  const std::vector<Candidate> others = MakeGenetic(space, 1)->Propose(4);
  EXPECT_EQ(started->Propose(4)[3].key, others[3].key);
}

// Beams expand what they were started with, the genetic strategy has it as a parent, and climbing
// goes on from it.
TEST(Started, TellsTheInnerOneTheirFigures) {
  const SharedSpace space = OpenSpace(kMatrix);
  SplitMix64 random(5);
  const Candidate start = space->Start();
  const Candidate quick = space->RandomWalk(3, random);
  for (const std::string_view name : {"beam", "genetic", "hill_climbing"}) {
    auto inner =
        name == "beam" ? MakeBeam(space, {.width = 1}) : FindStrategy(name).value()->make(space, 1);
    const auto started = MakeStarted(std::move(inner), {quick});
    started->Tell(std::vector<Evaluated>{{.candidate = start, .cost = 100}});
    started->Tell(std::vector<Evaluated>{{.candidate = started->Propose(1)[0], .cost = 1}});
    std::size_t descendants = 0;
    for (const Candidate& one : started->Propose(40)) {
      descendants += one.length() > quick.length() &&
                             std::equal(quick.steps.begin(), quick.steps.end(), one.steps.begin())
                         ? 1
                         : 0;
    }
    EXPECT_GT(descendants, 5) << name;
  }
}

// Walks come first, but a start that none of them beats is not forgotten: an editor's may be good.
TEST(HillClimbing, GoesOnFromAQuickStart) {
  constexpr std::size_t kMostChanges = 3;  // of a mutation
  const SharedSpace space = OpenSpace(kMatrix);
  const auto climbing = MakeHillClimbing(space, 1);
  climbing->Tell(std::vector<Evaluated>{{.candidate = space->Start(), .cost = 1}});
  std::vector<Evaluated> walks;
  for (Candidate& walk : climbing->Propose(40)) {
    walks.push_back({.candidate = std::move(walk), .cost = 100});
  }
  EXPECT_TRUE(std::ranges::any_of(
      walks, [](const Evaluated& one) { return one.candidate.length() > kMostChanges; }));
  climbing->Tell(walks);
  for (const Candidate& one : climbing->Propose(40)) EXPECT_LE(one.length(), kMostChanges);
}

// Seven of eight proposals are passed over: 30 evaluations without an improvement are no reason to
// start elsewhere.
TEST(HillClimbing, DoesNotStartElsewhereForWhatAScorerPassedOver) {
  constexpr std::size_t kMostChanges = 3;
  const SharedSpace space = OpenSpace(kMatrix);
  auto climbing = MakeGuided(MakeHillClimbing(space, 1), std::make_unique<NodeScorer>(), 1);
  climbing->Tell(std::vector<Evaluated>{{.candidate = space->Start(), .cost = 1}});
  const auto slower = [&](std::size_t count) {
    std::vector<Evaluated> results;
    for (Candidate& one : climbing->Propose(count)) {
      results.push_back({.candidate = std::move(one), .cost = 100});
    }
    return results;
  };
  for (int batch = 0; batch < 3; ++batch) climbing->Tell(slower(20));
  for (const Evaluated& one : slower(20)) EXPECT_LE(one.candidate.length(), kMostChanges);
}

// The first five children of the start are its own: with 160 visits it would have enough of them.
TEST(TreeSearch, KeepsNoTraceOfWhatAScorerPassedOver) {
  const SharedSpace space = OpenSpace(kMatrix);
  const auto search = MakeTreeSearch(space, 1);
  search->Tell(std::vector<Evaluated>{{.candidate = space->Start(), .cost = 100}});
  for (int batch = 0; batch < 20; ++batch) {
    std::vector<Evaluated> passed_over;
    for (Candidate& one : search->Propose(8)) {
      passed_over.push_back({.candidate = std::move(one), .is_tried = false});
    }
    search->Tell(passed_over);
  }
  for (const Candidate& one : search->Propose(5)) EXPECT_LE(one.length(), 1);
}

TEST(TreeSearch, DoesNotRunDryWithAScorer) {
  LandscapeEvaluator evaluator;
  const SystemClock clock;
  Search search(evaluator, clock, {.evaluations = 600, .cut_factor = 0});
  const auto space = OpenSpace(kMatrix);
  search.Add(
      Exploration(space, MakeGuided(MakeTreeSearch(space, 1), std::make_unique<NodeScorer>(), 1)));
  EXPECT_TRUE(search.Run());
  EXPECT_EQ(evaluator.asked.size(), 600);
}

TEST(LinearScorer, LearnsASmoothLandscape) {
  const SharedSpace space = OpenSpace(kMatrix);
  const auto scorer = MakeLinearScorer();
  SplitMix64 random(3);
  std::vector<Evaluated> known;
  std::vector<Candidate> fresh;
  for (int i = 0; i < 400; ++i) {
    const Candidate walk = space->RandomWalk(6, random);
    known.push_back({.candidate = walk, .cost = LandscapeNs(walk.tree)});
    fresh.push_back(space->RandomWalk(6, random));
  }
  scorer->Learn(known);
  const std::vector<double> scores = scorer->Score(fresh);
  int right = 0;  // of pairs, how many are in the right order
  int pairs = 0;
  for (std::size_t i = 1; i < fresh.size(); ++i) {
    const double truth = LandscapeNs(fresh[i].tree) - LandscapeNs(fresh[i - 1].tree);
    if (truth == 0) continue;
    ++pairs;
    right += (truth > 0) == (scores[i] > scores[i - 1]);
  }
  EXPECT_GT(right, pairs * 7 / 10);
}

}  // namespace
}  // namespace loopfleet::client
