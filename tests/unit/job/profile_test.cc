#include "common/job/profile.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "common/job/loop_schedule.h"
#include "common/job/task.h"

namespace loopfleet {
namespace {

JobSpec ProfileSpec(std::string_view uri, ProfileLevel level = ProfileLevel::kLines) {
  JobSpec spec{.source = looptree::BenchmarkUri{std::string(uri)}};
  spec.profile = level;
  return spec;
}

Profile SomeProfile() {
  return {.level = ProfileLevel::kLines,
          .overhead = -0.01,
          .run_ns = 4150,
          .note = "L7 is not shown",
          .code_hash = "1c48",
          .lines = {{.place = {.ref = 0, .part = ProfilePart::kPack},
                     .share = 0.25,
                     .low = 0.2,
                     .high = 0.3,
                     .samples = 50},
                    {.place = {.ref = 3}, .share = 0.75, .low = 0.7, .high = 0.8, .samples = 150},
                    {.place = {.ref = 4}, .fused_into = 5},
                    {.place = {.ref = 6}, .share = 0.5, .cycles = 12'000.5, .entries = 2},
                    {.place = {.part = ProfilePart::kOutside}, .high = 0.01}}};
}

TEST(Profile, ItsValuesComeBack) {
  const Observed observed = ToObserved(SomeProfile());
  EXPECT_LE(observed.values.size(), kMostObservedValues);
  EXPECT_EQ(ProfileOf(observed), SomeProfile());
  const Profile none{.level = ProfileLevel::kRoots};
  EXPECT_EQ(ProfileOf(ToObserved(none)), none);
}

TEST(Profile, OtherValuesAreNone) {
  const std::function<void(Observed&)> damages[] = {
      [](Observed& o) { o.values.erase("level"); },
      [](Observed& o) { o.values["level"] = std::string("none"); },
      [](Observed& o) { o.values["level"] = std::string("line"); },
      [](Observed& o) { o.values["overhead"] = std::string("much"); },
      [](Observed& o) { o.values.erase("share"); },
      [](Observed& o) { o.values["share"] = std::vector<double>{1}; },
      [](Observed& o) { std::get<std::vector<double>>(o.values["share"])[0] = -1; },
      [](Observed& o) { std::get<std::vector<double>>(o.values["ref"])[0] = 0.5; },
      [](Observed& o) { std::get<std::vector<double>>(o.values["part"])[0] = 5; },
      [](Observed& o) { std::get<std::vector<double>>(o.values["fused_into"])[0] = -2; },
      [](Observed& o) {
        std::get<std::vector<double>>(o.values["low"])[0] =
            std::numeric_limits<double>::quiet_NaN();
      },
  };
  for (const auto& damage : damages) {
    Observed observed = ToObserved(SomeProfile());
    damage(observed);
    EXPECT_FALSE(ProfileOf(observed));
  }
  EXPECT_FALSE(ProfileOf({}));
}

TEST(Profile, IsAJobOfItsOwn) {
  const JobSpec roots = ProfileSpec("benchmark://mm-v0/mm8_8_8", ProfileLevel::kRoots);
  const JobSpec lines = ProfileSpec("benchmark://mm-v0/mm8_8_8", ProfileLevel::kLines);
  JobSpec figure = roots;
  figure.profile = ProfileLevel::kNone;
  EXPECT_EQ(TaskOf(roots).kind, TaskKind::kProfile);
  EXPECT_EQ(TaskOf(figure).kind, TaskKind::kLoopSchedule);
  const auto tree = ResolveLoopSchedule(figure)->subject;
  EXPECT_EQ(ResolveProfile(roots)->subject, ProfileSubject(tree, ProfileLevel::kRoots));
  EXPECT_EQ(ResolveProfile(lines)->subject, ProfileSubject(tree, ProfileLevel::kLines));
  EXPECT_NE(ResolveProfile(roots)->subject, ResolveProfile(lines)->subject);
  EXPECT_NE(ResolveProfile(roots)->subject, tree);
  EXPECT_FALSE(WhyNoProfile(lines, ToObserved(SomeProfile())));
  EXPECT_TRUE(WhyNoProfile(roots, ToObserved(SomeProfile())));
}

TEST(Profile, OfKernelsOnAGpuByRootsOnly) {
  constexpr const char* kOfGpus = "benchmark://loop_tool-cuda-v0/1024";
  for (const ProfileLevel level : {ProfileLevel::kLoops, ProfileLevel::kLines}) {
    JobSpec any = ProfileSpec("benchmark://mm-v0/mm8_8_8", level);
    any.device = DeviceRequest::kAny;
    EXPECT_EQ(ResolveProfile(any)->placement, Placement::kCpu);
    JobSpec asks = any;
    asks.device = DeviceRequest::kCuda;
    for (const JobSpec& spec : {asks, ProfileSpec(kOfGpus, level)}) {
      const auto resolved = ResolveProfile(spec);
      ASSERT_FALSE(resolved);
      EXPECT_EQ(resolved.error().code, FailureCode::kUnsupported);
      for (const char* word : {"'profile'", "'roots'"}) {
        EXPECT_NE(resolved.error().message.find(word), std::string::npos) << word;
      }
    }
  }
  JobSpec any = ProfileSpec("benchmark://mm-v0/mm8_8_8", ProfileLevel::kRoots);
  EXPECT_EQ(ResolveProfile(any)->placement, Placement::kCpu);
  any.device = DeviceRequest::kAny;
  EXPECT_EQ(ResolveProfile(any)->placement, Placement::kAny);
  EXPECT_EQ(ResolveProfile(ProfileSpec(kOfGpus, ProfileLevel::kRoots))->placement,
            Placement::kCuda);
}

TEST(Profile, FieldsAboutFiguresMeanNothingForIt) {
  JobSpec spec = ProfileSpec("benchmark://mm-v0/mm8_8_8");
  spec.cache = CacheState::kCold;
  const auto invalid = ValidateJob(spec);
  ASSERT_TRUE(invalid);
  EXPECT_EQ(invalid->code, FailureCode::kMalformed);
  EXPECT_NE(invalid->message.find("'cache'"), std::string::npos);

  JobSpec figure{.source = spec.source, .actions = {looptree::Down{}}};
  figure.precision = 0.01;
  figure.threads = 2;
  figure.affinity = "one";
  const JobSpec profile = AsProfile(figure, ProfileLevel::kLoops);
  EXPECT_FALSE(ValidateJob(profile));
  EXPECT_EQ(profile.profile, ProfileLevel::kLoops);
  EXPECT_EQ(profile.threads, 2U);
  EXPECT_EQ(profile.affinity, "one");
  EXPECT_EQ(profile.actions, figure.actions);
  EXPECT_EQ(profile.precision, 0);
}

}  // namespace
}  // namespace loopfleet
