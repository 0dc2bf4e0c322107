#include "worker/evaluation/grade_limit.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

using monitoring::Finding;
using monitoring::Severity;

GradeLimit LimitBy(const char* check, Severity severity) {
  return GradeLimitOf(std::vector{Finding{.check = check, .severity = severity}});
}

TEST(GradeLimit, AQuietHostHasNone) {
  EXPECT_EQ(GradeLimitOf({}), GradeLimit{});
  EXPECT_EQ(LimitBy("governor", Severity::kGood), GradeLimit{});
}

TEST(GradeLimit, WhatIsNotKnownOrMerelyNoticedLimitsNothing) {
  for (const char* check : {"cores", "governor", "cpu_quota", "clock_source", "turbo", "heat"}) {
    EXPECT_EQ(LimitBy(check, Severity::kUnknown), GradeLimit{}) << check;
    EXPECT_EQ(LimitBy(check, Severity::kNotice), GradeLimit{}) << check;
  }
}

TEST(GradeLimit, WhatSamplesDoNotShowDoes) {
  for (const char* check : {"cores", "governor", "cpu_quota", "clock_source"}) {
    const GradeLimit wanted{.best = Grade::kB, .because = {check}};
    EXPECT_EQ(LimitBy(check, Severity::kProblem), wanted);
  }
}

TEST(GradeLimit, WhatSamplesShowDoesNot) {
  for (const char* check : {"steal", "memory", "driver", "sandbox"}) {
    EXPECT_EQ(LimitBy(check, Severity::kProblem), GradeLimit{}) << check;
  }
}

// A name that matches no check would never limit anything.
TEST(GradeLimit, ItsChecksAreThoseOfTheInspection) {
  std::vector<Finding> findings = monitoring::InspectHost({});
  for (Finding& finding : findings) finding.severity = Severity::kProblem;
  EXPECT_EQ(GradeLimitOf(findings).because,
            (std::vector<std::string>{"cores", "governor", "cpu_quota", "clock_source"}));
}

TEST(GradeLimit, ARowSaysWhy) {
  EXPECT_EQ(ConditionText(Isolation::kSeccomp, {}), "seccomp+rlimits");
  EXPECT_EQ(
      ConditionText(Isolation::kProcess, {.best = Grade::kB, .because = {"governor", "cpu_quota"}}),
      "process+rlimits; no better than B: governor, cpu_quota");
}

}  // namespace
}  // namespace loopfleet::worker
