#include "common/job/job_spec.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace loopfleet {
namespace {

JobSpec Spec(std::string uri) { return JobSpec{.source = looptree::BenchmarkUri{std::move(uri)}}; }

TEST(JobSpec, DefaultsAreSupported) {
  EXPECT_FALSE(UnsupportedField(Spec("benchmark://mm-v0/mm8_8_8")));
}

TEST(JobSpec, EachFieldThatDoesNotWorkYetIsRefusedByName) {
  struct Case {
    std::string field;
    std::function<void(JobSpec&)> set;
  };
  const std::vector<Case> cases = {
      {"priority", [](JobSpec& s) { s.priority = 1; }},
      {"threads", [](JobSpec& s) { s.threads = 2; }},
      {"cache", [](JobSpec& s) { s.cache = CacheState::kCold; }},
      {"labels", [](JobSpec& s) { s.labels = {"a"}; }},
      {"affinity", [](JobSpec& s) { s.affinity = "x"; }},
      {"precision", [](JobSpec& s) { s.precision = 0.01; }},
      {"budget_ms", [](JobSpec& s) { s.budget_ms = 10; }},
      {"cut_above_ns", [](JobSpec& s) { s.cut_above_ns = 1; }},
      {"deadline_s", [](JobSpec& s) { s.deadline_s = 60; }},
      {"max_age_s", [](JobSpec& s) { s.max_age_s = 60; }},
  };
  for (const Case& c : cases) {
    JobSpec spec = Spec("benchmark://mm-v0/mm8_8_8");
    c.set(spec);
    const auto failure = UnsupportedField(spec);
    ASSERT_TRUE(failure) << c.field;
    EXPECT_EQ(failure->code, FailureCode::kUnsupported);
    EXPECT_NE(failure->message.find("'" + c.field + "'"), std::string::npos) << failure->message;
  }
}

TEST(JobSpec, ReplayGivesTheTree) {
  JobSpec spec = Spec("benchmark://mm-v0/mm8_8_8");
  spec.actions = {looptree::Down{}, looptree::SwapUp{}};
  const auto replayed = ReplayJob(spec);
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_EQ(replayed->benchmark.dialect, looptree::Dialect::kAgent);
  EXPECT_EQ(looptree::FlopCount(replayed->tree.program()), 2u * 8 * 8 * 8);
}

TEST(JobSpec, ReplayNamesTheIllegalAction) {
  JobSpec spec = Spec("benchmark://mm-v0/mm8_8_8");
  spec.actions = {looptree::Down{}, looptree::Split{1 << 20}};
  const auto replayed = ReplayJob(spec);
  ASSERT_FALSE(replayed);
  EXPECT_EQ(replayed.error().code, FailureCode::kInvalidAction);
  EXPECT_EQ(replayed.error().action_index, 1u);
}

TEST(JobSpec, ContradictingDialectIsRefused) {
  JobSpec spec = Spec("benchmark://mm-v0/mm8_8_8");
  spec.dialect = looptree::Dialect::kSimple;
  const auto replayed = ReplayJob(spec);
  ASSERT_FALSE(replayed);
  EXPECT_EQ(replayed.error().code, FailureCode::kInvalidBenchmark);
}

TEST(JobSpec, PlacementFollowsTheBenchmarkUnlessTheJobSaysOtherwise) {
  using looptree::Target;
  EXPECT_EQ(PlacementOf(DeviceWish::kByBenchmark, Target::kCpu), Placement::kCpu);
  EXPECT_EQ(PlacementOf(DeviceWish::kByBenchmark, Target::kCuda), Placement::kCuda);
  EXPECT_EQ(PlacementOf(DeviceWish::kCpu, Target::kCuda), Placement::kCpu);
  EXPECT_EQ(PlacementOf(DeviceWish::kCuda, Target::kCpu), Placement::kCuda);
  EXPECT_EQ(PlacementOf(DeviceWish::kAny, Target::kCuda), Placement::kAny);
}

}  // namespace
}  // namespace loopfleet
