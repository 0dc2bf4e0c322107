#include "common/job/job_spec.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "common/job/loop_schedule.h"

namespace loopfleet {
namespace {

JobSpec Spec(std::string uri) { return JobSpec{.source = looptree::BenchmarkUri{std::move(uri)}}; }

TEST(JobSpec, DefaultsMakeSense) { EXPECT_FALSE(ValidateSpec(Spec("benchmark://mm-v0/mm8_8_8"))); }

TEST(JobSpec, ValuesWithoutAMeaningAreRefusedByName) {
  struct Case {
    std::string field;
    std::function<void(JobSpec&)> set;
  };
  const std::vector<Case> cases = {
      {"threads", [](JobSpec& s) { s.threads = 0; }},
      {"threads", [](JobSpec& s) { s.threads = kMostThreads + 1; }},
      {"precision", [](JobSpec& s) { s.precision = kMinPrecision / 2; }},
      {"precision", [](JobSpec& s) { s.precision = -0.01; }},
      {"precision", [](JobSpec& s) { s.precision = 1; }},
      {"budget_ms", [](JobSpec& s) { s.budget_ms = 0.01; }},
      {"budget_ms", [](JobSpec& s) { s.budget_ms = 1e6; }},
      {"max_age_s", [](JobSpec& s) { s.max_age_s = -1; }},
      {"priority", [](JobSpec& s) { s.priority = kMostPriority + 1; }},
      {"priority", [](JobSpec& s) { s.priority = kLeastPriority - 1; }},
      {"labels", [](JobSpec& s) { s.labels = {"quiet", ""}; }},
      {"labels", [](JobSpec& s) { s.labels = {"a,b"}; }},
      {"deadline_s", [](JobSpec& s) { s.deadline_s = -1; }},
      {"deadline_s", [](JobSpec& s) { s.deadline_s = 1e-9; }},
      {"deadline_s", [](JobSpec& s) { s.deadline_s = 1e12; }},
  };
  for (const Case& c : cases) {
    JobSpec spec = Spec("benchmark://mm-v0/mm8_8_8");
    c.set(spec);
    const auto failure = ValidateSpec(spec);
    ASSERT_TRUE(failure) << c.field;
    EXPECT_EQ(failure->code, FailureCode::kMalformed);
    EXPECT_NE(failure->message.find("'" + c.field + "'"), std::string::npos) << failure->message;
  }
  JobSpec good = Spec("benchmark://mm-v0/mm8_8_8");
  good.threads = 2;
  good.cache = CacheState::kCold;
  good.precision = 0.01;
  good.budget_ms = 5;
  good.cut_above_ns = 1;
  good.max_age_s = 0.5;
  good.priority = kMostPriority;
  good.labels = {"quiet", "isa=avx512"};
  good.affinity = "episode 7";
  good.deadline_s = 60;
  EXPECT_FALSE(ValidateSpec(good));
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
  EXPECT_EQ(PlacementOf(DeviceRequest::kByBenchmark, Target::kCpu), Placement::kCpu);
  EXPECT_EQ(PlacementOf(DeviceRequest::kByBenchmark, Target::kCuda), Placement::kCuda);
  EXPECT_EQ(PlacementOf(DeviceRequest::kCpu, Target::kCuda), Placement::kCpu);
  EXPECT_EQ(PlacementOf(DeviceRequest::kCuda, Target::kCpu), Placement::kCuda);
  EXPECT_EQ(PlacementOf(DeviceRequest::kAny, Target::kCuda), Placement::kAny);
}

TEST(JobSpec, TooMuchWorkForADeviceIsRefusedOrGoesToAnother) {
  using looptree::Target;
  const std::uint64_t most_cpu = MostFlops(DeviceKind::kCpu);
  const std::uint64_t most_cuda = MostFlops(DeviceKind::kCuda);
  EXPECT_EQ(PlaceJob(DeviceRequest::kCpu, Target::kCpu, most_cpu), Placement::kCpu);
  EXPECT_EQ(PlaceJob(DeviceRequest::kCpu, Target::kCpu, most_cpu + 1).error().code,
            FailureCode::kLimitFlops);
  EXPECT_EQ(PlaceJob(DeviceRequest::kAny, Target::kCpu, most_cpu), Placement::kAny);
  EXPECT_EQ(PlaceJob(DeviceRequest::kAny, Target::kCpu, most_cpu + 1), Placement::kCuda);
  EXPECT_EQ(PlaceJob(DeviceRequest::kByBenchmark, Target::kCuda, most_cuda), Placement::kCuda);
  EXPECT_EQ(PlaceJob(DeviceRequest::kAny, Target::kCpu, most_cuda + 1).error().code,
            FailureCode::kLimitFlops);
}

}  // namespace
}  // namespace loopfleet
