#include "worker/timing/quiet_patience.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace loopfleet::worker {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// Looks at a core on which the `n`th contended moment lasts `lasts(n)` ns.
class Core {
 public:
  explicit Core(std::function<std::uint64_t(std::uint64_t)> lasts) : lasts_(std::move(lasts)) {}

  void Look(QuietPatience& patience, int looks) {
    for (int i = 0; i < looks; ++i) {
      const std::uint64_t bound = patience.Next(kMs);
      const std::uint64_t lasts = lasts_(moment_++);
      const std::uint64_t took = std::min(bound, lasts);
      waited_ns += took;
      const bool is_quiet = lasts <= bound;
      if (is_quiet) ++quiet;
      if (bound > 0) patience.Observe({.bound_ns = bound, .took_ns = took, .has_helped = is_quiet});
    }
  }
  std::uint64_t waited_ns = 0;
  int quiet = 0;

 private:
  std::function<std::uint64_t(std::uint64_t)> lasts_;
  std::uint64_t moment_ = 0;
};

constexpr auto kForGood = [](std::uint64_t) { return 1'000 * kMs; };
// Every other moment is over within half of the longest wait.
constexpr auto kOftenOver = [](std::uint64_t n) { return n % 2 == 0 ? kMs / 2 : 1'000 * kMs; };

TEST(QuietPatienceTest, BeginsPatient) {
  QuietPatience patience;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(patience.Next(kMs), kMs);
}

TEST(QuietPatienceTest, WhereWaitingHelpsItGoesOn) {
  QuietPatience patience;
  Core core(kOftenOver);
  core.Look(patience, 1'000);
  EXPECT_GE(patience.bound_ns(), kMs / 2);
  EXPECT_EQ(core.quiet, 500);
}

TEST(QuietPatienceTest, BesideANeighbourWhoStaysHardlyAnyLookWaits) {
  QuietPatience patience;
  Core core(kForGood);
  core.Look(patience, 64);
  EXPECT_EQ(patience.bound_ns(), 0U);
  core.waited_ns = 0;
  core.Look(patience, 1'600);
  EXPECT_EQ(core.waited_ns, 100 * kMs);  // one look in sixteen
}

TEST(QuietPatienceTest, WhenHeHasGoneItIsFoundOut) {
  QuietPatience patience;
  Core(kForGood).Look(patience, 10'000);
  EXPECT_EQ(patience.bound_ns(), 0U);
  // Ten waits that are free to take the longest, half of which help.
  Core(kOftenOver).Look(patience, 10 * QuietPatience::kExploresOneIn);
  EXPECT_GE(patience.bound_ns(), kMs / 2);
}

// One moment in five is over at once, the others stay: the longest wait has as many quiet moments
// to show as the shortest, and costs more.
TEST(QuietPatienceTest, NoLongerThanHelps) {
  QuietPatience patience;
  Core([](std::uint64_t n) { return n % 5 == 0 ? kMs / 20 : 1'000 * kMs; }).Look(patience, 3'000);
  EXPECT_EQ(patience.bound_ns(), kMs / 16);
}

// Short waits that helped say nothing of those that did not: if they were counted, a bound would
// look better for being short.
TEST(QuietPatienceTest, OnlyWaitsThatMayTakeTheLongestAreLearnedFrom) {
  QuietPatience patience;
  Core(kForGood).Look(patience, 10'000);
  for (int i = 0; i < 1'000; ++i) {
    patience.Observe({.bound_ns = kMs / 2, .took_ns = kMs / 100, .has_helped = true});
  }
  EXPECT_EQ(patience.bound_ns(), 0U);
}

// Beside builds on the core a wait takes several times what it may.
TEST(QuietPatienceTest, WaitsThatTheSystemInterruptsCostWhatTheyTook) {
  QuietPatience patience;
  for (int i = 0; i < 64; ++i) {
    const bool is_quiet = i % 4 == 0;
    patience.Observe(
        {.bound_ns = kMs, .took_ns = is_quiet ? kMs : 5 * kMs, .has_helped = is_quiet});
  }
  EXPECT_EQ(patience.bound_ns(), 0U);
}

TEST(QuietPatienceTest, AJobsOwnLimitsHold) {
  QuietPatience patience;
  EXPECT_EQ(patience.Next(5 * kMs), 5 * kMs);  // a precise one, while waiting is worth it
  EXPECT_EQ(patience.Next(kMs / 100), kMs / 100);
  Core(kForGood).Look(patience, 10'000);
  std::uint64_t longest = 0;
  for (std::uint32_t i = 0; i < QuietPatience::kExploresOneIn; ++i) {
    longest = std::max(longest, patience.Next(kMs / 100));
  }
  EXPECT_EQ(longest, kMs / 100);
}

}  // namespace
}  // namespace loopfleet::worker
