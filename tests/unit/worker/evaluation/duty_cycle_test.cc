#include "worker/evaluation/duty_cycle.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace loopfleet::worker {
namespace {

using namespace std::chrono_literals;

class HandClock final : public Clock {
 public:
  Instant Now() const override { return now_; }
  WallTime WallNow() const override { return {}; }
  void Advance(Nanos by) { now_ += by; }

 private:
  Instant now_{Nanos{1}};
};

class DutyCycleTest : public testing::Test {
 protected:
  Nanos Spent(Activity activity) { return spent_[activity]; }
  Nanos Sum() {
    return std::accumulate(spent_.begin(), spent_.end(), Nanos{0},
                           [](Nanos sum, const auto& part) { return sum + part.second; });
  }

  HandClock clock_;
  std::map<Activity, Nanos> spent_;
  DutyCycle duty_{clock_, [this](Activity activity, Nanos spent) { spent_[activity] += spent; }};
};

TEST_F(DutyCycleTest, OneJobGoesThroughEveryActivity) {
  clock_.Advance(1s);  // no job is held
  duty_.SetHeld(1);
  clock_.Advance(2s);  // held, but nothing has begun
  {
    const DutyCycle::Step step(duty_, DutyCycle::Stage::kCompile);
    clock_.Advance(3s);
  }
  {
    const DutyCycle::Step step(duty_, DutyCycle::Stage::kVerify);
    clock_.Advance(4s);
  }
  duty_.SlotDoes(Activity::kMeasure);
  clock_.Advance(5s);
  duty_.KernelCameOff();
  duty_.SlotDoes(std::nullopt);
  duty_.KernelWasJudged(DutyCycle::Worth::kFigure);
  duty_.SetHeld(0);
  duty_.SlotDoes(Activity::kCanary);
  clock_.Advance(6s);
  duty_.SlotDoes(std::nullopt);
  EXPECT_EQ(Spent(Activity::kIdle), 1s);
  EXPECT_EQ(Spent(Activity::kWait), 2s);
  EXPECT_EQ(Spent(Activity::kCompile), 3s);
  EXPECT_EQ(Spent(Activity::kVerify), 4s);
  EXPECT_EQ(Spent(Activity::kMeasure), 5s);
  EXPECT_EQ(Spent(Activity::kCanary), 6s);
  EXPECT_EQ(Spent(Activity::kLost), 0s);
}

TEST_F(DutyCycleTest, WhatIsPreparedBesideAKernelIsNotTheSlots) {
  duty_.SetHeld(2);
  duty_.SlotDoes(Activity::kMeasure);
  {
    const DutyCycle::Step step(duty_, DutyCycle::Stage::kCompile);
    clock_.Advance(7s);
  }
  duty_.KernelCameOff();
  duty_.KernelWasJudged(DutyCycle::Worth::kFigure);
  EXPECT_EQ(Spent(Activity::kMeasure), 7s);
  EXPECT_EQ(Spent(Activity::kCompile), 0s);
}

TEST_F(DutyCycleTest, WhenSeveralArePreparedTheFurthestCounts) {
  duty_.SetHeld(2);
  const DutyCycle::Step compiles(duty_, DutyCycle::Stage::kCompile);
  const DutyCycle::Step verifies(duty_, DutyCycle::Stage::kVerify);
  clock_.Advance(1s);
  duty_.Settle();
  EXPECT_EQ(Spent(Activity::kVerify), 1s);
}

TEST_F(DutyCycleTest, AKernelWithoutAFigureIsLostAndTheNextOneIsNot) {
  duty_.SetHeld(2);
  duty_.SlotDoes(Activity::kMeasure);
  clock_.Advance(3s);
  duty_.KernelCameOff();  // the next one is on the slot at once
  clock_.Advance(1s);
  duty_.KernelWasJudged(DutyCycle::Worth::kNothing);
  clock_.Advance(1s);
  duty_.KernelCameOff();
  duty_.KernelWasJudged(DutyCycle::Worth::kFigure);
  EXPECT_EQ(Spent(Activity::kLost), 3s);
  EXPECT_EQ(Spent(Activity::kMeasure), 2s);
}

TEST_F(DutyCycleTest, WhoReadsInTheMiddleOfAKernelSeesAllOfTheTime) {
  duty_.SlotDoes(Activity::kMeasure);
  clock_.Advance(3s);
  duty_.Settle();
  EXPECT_EQ(Spent(Activity::kMeasure), 3s);
  clock_.Advance(2s);
  duty_.KernelCameOff();
  duty_.KernelWasJudged(DutyCycle::Worth::kNothing);
  EXPECT_EQ(Spent(Activity::kMeasure), 3s);  // counters never go back
  EXPECT_EQ(Spent(Activity::kLost), 2s);
}

// In any order of calls, the parts add up to the time that passed, to the nanosecond.
TEST_F(DutyCycleTest, ThePartsAlwaysAddUpToTheWholeTime) {
  std::mt19937 random(20261122);
  const auto below = [&](std::uint32_t bound) { return random() % bound; };
  const Instant start = clock_.Now();
  std::vector<std::unique_ptr<DutyCycle::Step>> steps;
  for (int i = 0; i < 20'000; ++i) {
    clock_.Advance(Nanos(below(1'000'000)));
    switch (below(8)) {
      case 0: duty_.SetHeld(below(3)); break;
      case 1:
        steps.push_back(std::make_unique<DutyCycle::Step>(
            duty_, below(2) == 0 ? DutyCycle::Stage::kCompile : DutyCycle::Stage::kVerify));
        break;
      case 2:
        if (!steps.empty())
          steps.erase(steps.begin() + below(static_cast<std::uint32_t>(steps.size())));
        break;
      case 3: duty_.SlotDoes(std::nullopt); break;
      case 4: duty_.SlotDoes(static_cast<Activity>(below(kActivities))); break;
      case 5: duty_.KernelCameOff(); break;
      case 6:
        duty_.KernelWasJudged(below(2) == 0 ? DutyCycle::Worth::kFigure
                                            : DutyCycle::Worth::kNothing);
        break;
      case 7: duty_.Settle(); break;
    }
    EXPECT_LE(Sum(), clock_.Now() - start);
  }
  duty_.Settle();
  EXPECT_EQ(Sum(), clock_.Now() - start);
  for (const auto& [activity, spent] : spent_) EXPECT_GT(spent, 0s) << ActivityName(activity);
  EXPECT_EQ(spent_.size(), kActivities);
}

TEST(DutyCycle, ManyThreadsLoseNoTime) {
  const SystemClock clock;
  std::map<Activity, Nanos> spent;
  const Instant before = clock.Now();
  DutyCycle duty(clock, [&](Activity activity, Nanos time) { spent[activity] += time; });
  const Instant born = clock.Now();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) {
        const DutyCycle::Step step(duty, DutyCycle::Stage::kCompile);
        duty.SetHeld(static_cast<std::size_t>(i % 2));
        duty.Settle();
      }
    });
  }
  threads.clear();
  const Instant asked = clock.Now();
  duty.Settle();
  const Instant after = clock.Now();
  Nanos sum{0};
  for (const auto& [activity, time] : spent) sum += time;
  EXPECT_GE(sum, asked - born);
  EXPECT_LE(sum, after - before);
}

}  // namespace
}  // namespace loopfleet::worker
