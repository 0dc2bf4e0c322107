#include "client/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/unit/client/search/landscape.h"

namespace loopfleet::client {
namespace {

constexpr const char* kMatrix = "benchmark://mm-v0/mm64_64_64";

// One second a look.
class TickingClock : public Clock {
 public:
  Instant Now() const override { return Instant(std::chrono::seconds(ticks_++)); }
  WallTime WallNow() const override { return {}; }

 private:
  mutable std::int64_t ticks_ = 0;
};

TEST(Search, SharesTheEvaluatorAmongItsLanes) {
  LandscapeEvaluator evaluator;
  const SystemClock clock;
  Search search(evaluator, clock, {.evaluations = 100, .in_flight = 16});
  search.Add(Explore(OpenSpace(kMatrix), "genetic", 1));
  search.Add(Explore(OpenSpace("benchmark://mm-v0/mm32_48_16"), "random", 1));
  std::vector<std::uint64_t> lead;
  ASSERT_TRUE(search.Run([&] {
    lead.push_back(search.lanes()[0].exploration.evaluations() -
                   search.lanes()[1].exploration.evaluations());
  }));
  EXPECT_EQ(std::ranges::count(lead, 0U), static_cast<std::ptrdiff_t>(lead.size()));
  for (const Search::Lane& lane : search.lanes()) {
    EXPECT_EQ(lane.exploration.evaluations(), 100);
    EXPECT_EQ(lane.winners.Sorted().size(), 3);
    EXPECT_EQ(lane.winners.Sorted().front().elapsed_ns, lane.exploration.best()->cost);
    EXPECT_EQ(lane.untuned->elapsed_ns, lane.exploration.start_cost());
    EXPECT_TRUE(std::ranges::is_sorted(lane.exploration.curve(), {}, &CurvePoint::evaluations));
    EXPECT_TRUE(
        std::ranges::is_sorted(lane.exploration.curve(), std::greater(), &CurvePoint::best_cost));
  }
}

TEST(Search, EndsAtItsTime) {
  LandscapeEvaluator evaluator;
  const TickingClock clock;
  Search search(evaluator, clock, {.seconds = 100});
  search.Add(Explore(OpenSpace(kMatrix), "random", 1));
  ASSERT_TRUE(search.Run());
  EXPECT_GT(evaluator.asked.size(), 32);
  EXPECT_LT(evaluator.asked.size(), 3200);
}

// Each kernel takes two seconds, so 64 of them would take two minutes.
TEST(Search, OfSlowKernelsAsksForWhatFitsIntoItsTime) {
  class SlowClock : public Clock {
   public:
    explicit SlowClock(const LandscapeEvaluator& evaluator) : evaluator_(evaluator) {}
    Instant Now() const override {
      return Instant(std::chrono::seconds(2 * evaluator_.asked.size()));
    }
    WallTime WallNow() const override { return {}; }

   private:
    const LandscapeEvaluator& evaluator_;
  };
  LandscapeEvaluator evaluator;
  const SlowClock clock(evaluator);
  Search search(evaluator, clock, {.seconds = 60});
  search.Add(Explore(OpenSpace(kMatrix), "random", 1));
  ASSERT_TRUE(search.Run());
  EXPECT_GE(evaluator.asked.size(), 28);
  EXPECT_LE(evaluator.asked.size(), 34);
}

TEST(Search, CutsWhatIsHopeless) {
  LandscapeEvaluator evaluator;
  const SystemClock clock;
  Search search(evaluator, clock, {.evaluations = 300, .cut_factor = 1.5});
  search.Add(Explore(OpenSpace(kMatrix), "genetic", 1));
  ASSERT_TRUE(search.Run());
  EXPECT_GT(evaluator.cut, 0);
  EXPECT_EQ(search.lanes().front().exploration.without_figure(),
            static_cast<std::uint64_t>(evaluator.cut));
}

TEST(Search, AsksAgainWhereTheHostWasBusyAndGivesUp) {
  LandscapeEvaluator evaluator;
  int busy = 0;
  evaluator.on_outcome = [&](Outcome& outcome) {
    if (busy++ % 2 == 0) {
      outcome.evaluation.verdict = Failure{.code = FailureCode::kUnstableTiming};
    }
  };
  const SystemClock clock;
  Search search(evaluator, clock, {.evaluations = 50});
  search.Add(Explore(OpenSpace(kMatrix), "genetic", 1));
  ASSERT_TRUE(search.Run());
  EXPECT_EQ(search.lanes().front().exploration.evaluations(), 50);
  EXPECT_GT(evaluator.asked.size(), 50);
  EXPECT_LE(evaluator.asked.size(), 150);
  EXPECT_LT(search.lanes().front().exploration.without_figure(), 30);
}

// Else a search could not be repeated from the database that it filled.
TEST(Search, ChoosesTheSameWhereSomeHadToBeAskedForAgain) {
  const auto best_of = [](int busy_every) {
    LandscapeEvaluator evaluator;
    int count = 0;
    evaluator.on_outcome = [&](Outcome& outcome) {
      if (busy_every > 0 && ++count % busy_every == 0) {
        outcome.evaluation.verdict = Failure{.code = FailureCode::kUnstableTiming};
      }
    };
    const SystemClock clock;
    Search search(evaluator, clock, {.evaluations = 300, .in_flight = 16});
    search.Add(Explore(OpenSpace(kMatrix), "genetic", 1));
    EXPECT_TRUE(search.Run());
    std::vector<std::pair<std::uint64_t, double>> curve;
    for (const CurvePoint& point : search.lanes().front().exploration.curve()) {
      curve.emplace_back(point.evaluations, point.best_cost);
    }
    return curve;
  };
  EXPECT_EQ(best_of(0), best_of(7));
}

TEST(Search, ComparesFiguresOfOneHardwareClassOnly) {
  LandscapeEvaluator evaluator;
  evaluator.on_outcome = [&](Outcome& outcome) {
    if (outcome.job.index % 2 == 0) return;
    outcome.evaluation.conditions->hardware.hardware_class = "cpu:y";
    outcome.evaluation.verdict = Measurement{.elapsed_ns = 1, .grade = Grade::kA};
  };
  const SystemClock clock;
  Search search(evaluator, clock, {.evaluations = 50});
  search.Add(Explore(OpenSpace(kMatrix), "random", 1));
  ASSERT_TRUE(search.Run());
  EXPECT_EQ(search.lanes().front().other_hardware, 25);
  EXPECT_GT(search.lanes().front().exploration.best()->cost, 1);
}

TEST(Search, KeepsWhatItFoundWhenTheEvaluatorFails) {
  class Failing : public LandscapeEvaluator {
   public:
    Answer<void> Send(std::span<const Trial> trials) override {
      if (asked.size() > 100) return std::unexpected(CallError{.kind = ErrorKind::kUnavailable});
      return LandscapeEvaluator::Send(trials);
    }
  };
  Failing evaluator;
  const SystemClock clock;
  Search search(evaluator, clock, {.evaluations = 1000});
  search.Add(Explore(OpenSpace(kMatrix), "random", 1));
  EXPECT_EQ(search.Run().error().kind, ErrorKind::kUnavailable);
  EXPECT_TRUE(search.lanes().front().exploration.best());
}

}  // namespace
}  // namespace loopfleet::client
