#include "common/job/task.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "common/job/probe.h"

namespace loopfleet {
namespace {

JobSpec Spec(std::string_view uri) { return {.source = looptree::BenchmarkUri{std::string(uri)}}; }

JobSpec ExampleOf(const TaskInfo& task) {
  JobSpec spec = Spec(task.example);
  spec.profile = task.example_profile;
  return spec;
}

TEST(Task, TheBenchmarkDecidesTheKind) {
  EXPECT_EQ(TaskOf(Spec("benchmark://mm-v0/mm8_8_8").source).kind, TaskKind::kLoopSchedule);
  EXPECT_EQ(TaskOf(Spec("probe://peaks-v0").source).kind, TaskKind::kProbe);
  EXPECT_EQ(TaskOf(Spec("probe://").source).kind, TaskKind::kProbe);
  EXPECT_EQ(TaskOf(Spec("probe").source).kind, TaskKind::kLoopSchedule);
  EXPECT_EQ(TaskOf(looptree::IrText{"probe://peaks-v0"}).kind, TaskKind::kLoopSchedule);
}

TEST(Task, EveryExampleIsOfItsKindAndResolves) {
  std::set<SubjectKey> subjects;
  for (const TaskInfo& task : TaskTable()) {
    SCOPED_TRACE(EnumName(task.kind));
    EXPECT_EQ(&TaskOf(task.kind), &task);
    EXPECT_FALSE(ValidateJob(ExampleOf(task)));
    EXPECT_EQ(&TaskOf(ExampleOf(task)), &task);
    const auto resolved = task.resolve(ExampleOf(task));
    ASSERT_TRUE(resolved) << resolved.error().message;
    EXPECT_TRUE(subjects.insert(resolved->subject).second);
    EXPECT_EQ(resolved->flop_count > 0, task.is_timed);
  }
}

TEST(Task, AProbeRefusesWhatMeansNothingForIt) {
  struct Case {
    FailureCode code;
    std::string_view named;
    std::function<void(JobSpec&)> set;
  };
  const Case cases[] = {
      {FailureCode::kInvalidBenchmark, "nearest: 'probe://peaks-v0'",
       [](JobSpec& s) { s.source = looptree::BenchmarkUri{"probe://peek-v0"}; }},
      {FailureCode::kInvalidAction, "no actions",
       [](JobSpec& s) { s.actions = {looptree::Down{}}; }},
      {FailureCode::kMalformed, "'threads'", [](JobSpec& s) { s.threads = 2; }},
      {FailureCode::kMalformed, "'merge_all_first'", [](JobSpec& s) { s.merge_all_first = true; }},
      {FailureCode::kMalformed, "'precision'", [](JobSpec& s) { s.precision = 0.01; }},
      {FailureCode::kMalformed, "'passes'", [](JobSpec& s) { s.passes = {"gvn"}; }},
      {FailureCode::kMalformed, "'profile'", [](JobSpec& s) { s.profile = ProfileLevel::kRoots; }},
      {FailureCode::kMalformed, "'device'", [](JobSpec& s) { s.device = DeviceRequest::kCuda; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.named);
    JobSpec spec = Spec(kPeaksProbe);
    c.set(spec);
    const auto resolved = ResolveProbe(spec);
    const auto invalid = ValidateJob(spec);
    ASSERT_NE(invalid.has_value(), !resolved.has_value());  // one of them
    const Failure failure = invalid ? *invalid : resolved.error();
    EXPECT_EQ(failure.code, c.code);
    EXPECT_NE(failure.message.find(c.named), std::string::npos) << failure.message;
  }
  JobSpec spec = Spec(kPeaksProbe);
  spec.labels = {"host=node7"};
  spec.tag = "7";
  spec.priority = 3;
  spec.device = DeviceRequest::kAny;
  EXPECT_FALSE(ValidateJob(spec));
  const auto resolved = ResolveProbe(spec);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(resolved->placement, Placement::kCpu);
}

TEST(Task, AProbeObservesNumbers) {
  const auto why_no_answer = TaskOf(TaskKind::kProbe).why_no_answer;
  Observed observed{.values = {{"clock_mhz", 3700.0}}};
  EXPECT_FALSE(why_no_answer(Spec(kPeaksProbe), observed));
  for (const ObservedValue& other :
       {ObservedValue(std::string("much text")), ObservedValue(std::vector<double>{1, 2})}) {
    observed.values["more"] = other;
    EXPECT_EQ(why_no_answer(Spec(kPeaksProbe), observed), "its value 'more' is not a number");
  }
}

}  // namespace
}  // namespace loopfleet
