#include "common/job/pass_job.h"

#include <gtest/gtest.h>

#include "common/job/task.h"

namespace loopfleet {
namespace {

JobSpec Spec(std::vector<std::string> passes, std::vector<std::string> observe = {}) {
  return {.source = looptree::BenchmarkUri{"generator://csmith-v0/7"},
          .passes = std::move(passes),
          .observe = std::move(observe)};
}

SubjectKey SubjectOf(const JobSpec& spec) { return ResolvePassJob(spec).value().subject; }

TEST(PassJob, ItsBenchmarksAreProgramsOfAllDatasets) {
  for (const char* uri :
       {"generator://csmith-v0/7", "generator://llvm-stress-v0/1", "benchmark://small-v0/qsort",
        "benchmark://debian-v0/bzip2", "bitcode://sha256/00", "generator://unknown-v0/1",
        "benchmark://cbench-v1/qsort", "benchmark://poj104-v1/1"}) {
    EXPECT_EQ(TaskOf(looptree::BenchmarkUri{uri}).kind, TaskKind::kPasses) << uri;
  }
}

TEST(PassJob, OneSubjectHoweverThePassesAreWritten) {
  const SubjectKey gvn = SubjectOf(Spec({"-mem2reg", "-gvn"}));
  EXPECT_EQ(SubjectOf(Spec({"mem2reg", "gvn"})), gvn);
  EXPECT_EQ(SubjectOf(Spec({"function(mem2reg)", "function(gvn)"})), gvn);
  EXPECT_EQ(SubjectOf(Spec({"mem2reg", "gvn"}, {"IrInstructionCount"})), gvn);  // the default
  EXPECT_NE(SubjectOf(Spec({"gvn", "mem2reg"})), gvn);
  EXPECT_NE(SubjectOf(Spec({"mem2reg"})), gvn);
  EXPECT_NE(SubjectOf(Spec({"mem2reg", "gvn"}, {"Autophase"})), gvn);
  JobSpec other = Spec({"mem2reg", "gvn"});
  other.source = looptree::BenchmarkUri{"generator://csmith-v0/8"};
  EXPECT_NE(SubjectOf(other), gvn);
}

TEST(PassJob, BadInputNamesTheOffender) {
  struct Case {
    JobSpec spec;
    FailureCode code;
    std::string_view named;
    std::optional<std::uint32_t> index;
  };
  JobSpec looping = Spec({});
  looping.actions = {looptree::Down{}};
  JobSpec nowhere = Spec({});
  nowhere.source = looptree::BenchmarkUri{"generator://csmiht-v0/7"};
  JobSpec cuda = Spec({});
  cuda.device = DeviceRequest::kCuda;
  const Case cases[] = {
      {Spec({"gvn", "mem2rge"}), FailureCode::kInvalidAction, "nearest: -mem2reg", 1},
      {Spec({"gvn", "print<loops>"}), FailureCode::kInvalidAction, "print<loops>", 1},
      {looping, FailureCode::kInvalidAction, "'passes'", 0},
      {nowhere, FailureCode::kInvalidBenchmark, "nearest: generator://csmith-v0", std::nullopt},
      {Spec({}, {"Autofase"}), FailureCode::kMalformed, "nearest: Autophase", std::nullopt},
      {cuda, FailureCode::kMalformed, "'device'", std::nullopt},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.named);
    const auto resolved = ResolvePassJob(c.spec);
    ASSERT_FALSE(resolved);
    EXPECT_EQ(resolved.error().code, c.code);
    EXPECT_EQ(resolved.error().action_index, c.index);
    EXPECT_NE(resolved.error().message.find(c.named), std::string::npos)
        << resolved.error().message;
  }
}

TEST(PassJob, AnAnswerHasWhatWasAskedFor) {
  const JobSpec spec = Spec({"gvn"}, {"IrInstructionCount", "Autophase", "Ir"});
  Observed observed{.values = {{"IrInstructionCount", 7.0},
                               {"Autophase", std::vector<double>(56)},
                               {"Ir", std::string("define")},
                               {"commandline", std::string("opt-19")}}};
  EXPECT_FALSE(WhyNoAnswer(spec, observed));
  observed.values["Ir"] = Blob{.sha256 = std::string(64, 'a'), .bytes = 600'000};
  EXPECT_FALSE(WhyNoAnswer(spec, observed));
  observed.values["Autophase"] = observed.values["Ir"];
  EXPECT_NE(WhyNoAnswer(spec, observed)->find("'Autophase' is of another type"), std::string::npos);
  observed.values["Autophase"] = 3.0;
  EXPECT_NE(WhyNoAnswer(spec, observed)->find("'Autophase' is of another type"), std::string::npos);
  observed.values.erase("Autophase");
  EXPECT_NE(WhyNoAnswer(spec, observed)->find("no value 'Autophase'"), std::string::npos);
  EXPECT_NE(WhyNoAnswer(Spec({}), {}), std::nullopt);  // the count is the default
}

TEST(PassJob, FieldsOfOtherKindsAreRefused) {
  JobSpec spec = Spec({"gvn"});
  EXPECT_FALSE(ValidateJob(spec));
  spec.threads = 2;
  EXPECT_NE(ValidateJob(spec)->message.find("'threads'"), std::string::npos);
  JobSpec loops{.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm8_8_8"}, .passes = {"gvn"}};
  EXPECT_NE(ValidateJob(loops)->message.find("'passes'"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet
