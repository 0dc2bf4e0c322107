#include "client/audit.h"

#include <gtest/gtest.h>

#include <set>

namespace loopfleet::client {
namespace {

constexpr BatchId kBatch{7};

Conditions SomeConditions(std::string host) {
  return {.hardware = {.hardware_class = "cpu:x", .host = std::move(host)},
          .compiler = {.llvm = "19.1.7", .tier = "general", .revision = "1"},
          .policy = "p"};
}

Outcome Took(std::string host, double ns, double spread = 0.01) {
  Outcome outcome{.job = {kBatch, 3}, .sequence = 1, .attempts = 1, .worker = host + ":42"};
  outcome.evaluation.verdict = Measurement{
      .elapsed_ns = ns, .elapsed_low_ns = ns * (1 - spread), .elapsed_high_ns = ns * (1 + spread)};
  outcome.evaluation.conditions = SomeConditions(std::move(host));
  return outcome;
}

Outcome Failed(std::string host, FailureCode code) {
  Outcome outcome = Took(std::move(host), 1);
  outcome.evaluation.verdict = Failure{.code = code};
  return outcome;
}

Opinion Said(const Outcome& outcome, std::uint64_t cut_above_ns = 0) {
  return OpinionOf(outcome, {.cut_above_ns = cut_above_ns}, Keys::kNone).value();
}

AuditCase CaseOn(std::string host, Keys keys = Keys::kNone) {
  wire::JobInfo info{.outcome = Took(std::move(host), 1000)};
  return CaseOf(info, keys).value();
}

wire::WorkerInfo WorkerOn(std::string host, std::string key = "") {
  const Conditions conditions = SomeConditions(host);
  wire::WorkerInfo worker{.name = key.empty() ? host : key + "/" + host,
                          .hardware = conditions.hardware,
                          .compiler = conditions.compiler,
                          .max_threads = 2,
                          .labels = {"device=cpu", "host=" + host}};
  if (!key.empty()) worker.labels.push_back("key=" + key);
  return worker;
}

Outcome Counted(std::string host, double instructions) {
  Outcome outcome = Took(std::move(host), 1);
  outcome.evaluation.verdict =
      Observed{.values = {{"IrInstructionCount", instructions}, {"program", std::string("p")}}};
  return outcome;
}

// ---- the sample ---------------------------------------------------------------------------------

std::vector<JobId> Drawn(std::uint64_t seed, std::size_t most) {
  JobSampler sampler({{BatchId{1}, 10}, {BatchId{2}, 0}, {BatchId{5}, 30}}, seed);
  EXPECT_EQ(sampler.size(), 40U);
  std::vector<JobId> jobs;
  while (jobs.size() < most) {
    const auto job = sampler.Next();
    if (!job) break;
    jobs.push_back(*job);
  }
  return jobs;
}

TEST(JobSampler, DrawsEachJobOnce) {
  const auto jobs = Drawn(1, 100);
  EXPECT_EQ(jobs.size(), 40U);
  EXPECT_EQ(std::set<JobId>(jobs.begin(), jobs.end()).size(), 40U);
  for (const JobId job : jobs) {
    EXPECT_LT(job.index, job.batch == BatchId{1} ? 10U : 30U);
    EXPECT_NE(job.batch, BatchId{2});
  }
}

TEST(JobSampler, ASeedDrawsTheSameAndAnotherOneDoesNot) {
  EXPECT_EQ(Drawn(1, 8), Drawn(1, 8));
  EXPECT_NE(Drawn(1, 8), Drawn(2, 8));
}

TEST(JobSampler, OfNothingNothing) {
  JobSampler sampler({}, 1);
  EXPECT_EQ(sampler.Next(), std::nullopt);
}

// ---- witnesses ----------------------------------------------------------------------------------

TEST(Audit, AWitnessIsItsKeyWhateverItCallsItself) {
  Outcome outcome = Took("a", 1000);
  outcome.worker = "node1/a:42";
  EXPECT_EQ(WitnessOf(outcome, Keys::kInUse).name(), "node1");
  EXPECT_EQ(WitnessOf(outcome, Keys::kNone).name(), "a");
  EXPECT_EQ(WitnessOf(WorkerOn("b", "node1")).name(), "node1");
  EXPECT_TRUE(IsSame(WitnessOf(outcome, Keys::kInUse), WitnessOf(WorkerOn("b", "node1"))));
  EXPECT_FALSE(IsSame(WitnessOf(outcome, Keys::kInUse), WitnessOf(WorkerOn("a", "node2"))));
  // A result from before the fleet used keys has only its host.
  EXPECT_TRUE(IsSame(WitnessOf(Took("a", 1), Keys::kInUse), WitnessOf(WorkerOn("a", "node2"))));
}

TEST(Audit, TheNextWitnessIsAnotherHostThatMeasuresTheSame) {
  const AuditCase audit = CaseOn("a");
  SplitMix64 random(1);
  const auto next = [&](wire::WorkerInfo worker, SameHost same_host = SameHost::kNotAllowed) {
    const wire::WorkerList list{.workers = {WorkerOn("a"), std::move(worker)}};
    const auto* found = NextWitness(audit, list, same_host, random);
    return found == nullptr ? std::string() : found->hardware.host;
  };
  EXPECT_EQ(next(WorkerOn("b")), "b");
  EXPECT_EQ(next(WorkerOn("a")), "");
  EXPECT_EQ(next(WorkerOn("a"), SameHost::kAllowed), "a");
  auto other = WorkerOn("b");
  other.hardware.hardware_class = "cpu:y";
  EXPECT_EQ(next(other), "");
  other = WorkerOn("b");
  other.compiler.revision = "2";
  EXPECT_EQ(next(other), "");
  other = WorkerOn("b");
  other.state = wire::WorkerState::kQuarantined;
  EXPECT_EQ(next(other), "");
}

TEST(Audit, OfTwoHostsThatDisagreeNeitherIsAskedAgain) {
  AuditCase audit = CaseOn("a");
  ASSERT_TRUE(AddOpinion(audit, Took("b", 2000), Keys::kNone));
  SplitMix64 random(1);
  wire::WorkerList list{.workers = {WorkerOn("a"), WorkerOn("b")}};
  EXPECT_EQ(NextWitness(audit, list, SameHost::kAllowed, random), nullptr);
  list.workers.push_back(WorkerOn("c"));
  EXPECT_EQ(NextWitness(audit, list, SameHost::kAllowed, random)->hardware.host, "c");
}

TEST(Audit, ItsJobIsTheSameQuestionForOneHost) {
  wire::JobInfo info{.spec = {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm4_4_4"},
                              .priority = 3,
                              .threads = 2,
                              .labels = {"quiet"},
                              .affinity = "x",
                              .precision = 0.02,
                              .cut_above_ns = 500,
                              .deadline_s = 1},
                     .outcome = Took("a", 1000)};
  const JobSpec spec = AuditJob(CaseOf(info, Keys::kInUse).value(), WorkerOn("b", "node2"));
  EXPECT_EQ(spec.source, info.spec.source);
  EXPECT_EQ(spec.freshness, Freshness::kMeasureAgain);
  EXPECT_EQ(spec.device, DeviceRequest::kCpu);
  EXPECT_EQ(spec.labels, (std::vector<std::string>{"host=b", "key=node2"}));
  EXPECT_EQ(spec.threads, 2U);
  EXPECT_EQ(spec.precision, 0.02);
  EXPECT_EQ(spec.affinity, "");
  EXPECT_EQ(spec.deadline_s, 0);
  EXPECT_EQ(spec.cut_above_ns, 0U);  // it was measured, so the audit needs a time
  EXPECT_EQ(spec.tag, R"({"audit":"7.3"})");
  // A CUT is measured again with its bound.
  info.outcome = Failed("a", FailureCode::kCut);
  EXPECT_EQ(AuditJob(CaseOf(info, Keys::kNone).value(), WorkerOn("b")).cut_above_ns, 500U);
}

// ---- opinions -----------------------------------------------------------------------------------

TEST(Audit, OnlyWhatWasMeasuredForTheJobAndIsAboutTheTreeIsAudited) {
  const auto has_case = [](Outcome outcome) {
    return CaseOf({.outcome = std::move(outcome)}, Keys::kNone).has_value();
  };
  EXPECT_FALSE(CaseOf({}, Keys::kNone));  // not finished
  EXPECT_TRUE(has_case(Took("a", 1)));
  Outcome stored = Took("a", 1);
  stored.source = OutcomeSource::kStored;
  EXPECT_FALSE(has_case(stored));
  Outcome same_code = Took("a", 1);
  same_code.evaluation.same_code = true;
  EXPECT_FALSE(has_case(same_code));
  for (const FailureCode code : {FailureCode::kCompileError, FailureCode::kRunCrash,
                                 FailureCode::kWrongOutput, FailureCode::kSandboxViolation}) {
    EXPECT_TRUE(has_case(Failed("a", code)));
  }
  for (const FailureCode code : {FailureCode::kUnstableTiming, FailureCode::kExpired,
                                 FailureCode::kWorkerLost, FailureCode::kInvalidAction}) {
    EXPECT_FALSE(has_case(Failed("a", code)));
  }
}

TEST(Audit, AnOpinionUnderOtherConditionsIsNone) {
  AuditCase audit = CaseOn("a");
  EXPECT_FALSE(AddOpinion(audit, Failed("b", FailureCode::kUnstableTiming), Keys::kNone));
  Outcome other = Took("b", 1000);
  other.evaluation.conditions->policy = "q";
  EXPECT_FALSE(AddOpinion(audit, other, Keys::kNone));
  EXPECT_TRUE(AddOpinion(audit, Took("b", 1000), Keys::kNone));
  EXPECT_EQ(audit.opinions.size(), 2U);
}

TEST(Audit, FiguresAgreeWithinTheTolerance) {
  const Opinion a = Said(Took("a", 1000));
  EXPECT_TRUE(Agree(a, Said(Took("b", 1000))));
  EXPECT_TRUE(Agree(a, Said(Took("b", 1110))));   // 1010 to 1099
  EXPECT_FALSE(Agree(a, Said(Took("b", 1140))));  // 1010 to 1129
  EXPECT_TRUE(Agree(Said(Took("b", 1110)), a));
  EXPECT_FALSE(Agree(Said(Took("b", 1140)), a));
}

TEST(Audit, AWideIntervalIsNoExcuse) {
  EXPECT_FALSE(Agree(Said(Took("a", 1000, 0.9)), Said(Took("b", 2000, 0.9))));
}

TEST(Audit, AFailureAgreesWithTheSameFailureOnly) {
  const Opinion crash = Said(Failed("a", FailureCode::kRunCrash));
  EXPECT_TRUE(Agree(crash, Said(Failed("b", FailureCode::kRunCrash))));
  EXPECT_FALSE(Agree(crash, Said(Failed("b", FailureCode::kWrongOutput))));
  EXPECT_FALSE(Agree(crash, Said(Took("b", 1000))));
  EXPECT_FALSE(Agree(Said(Took("b", 1000)), crash));
}

TEST(Audit, ACutAgreesWithWhatIsNotQuickerThanItsBound) {
  const Opinion cut = Said(Failed("a", FailureCode::kCut), 1000);
  EXPECT_TRUE(Agree(cut, Said(Took("b", 5000))));
  EXPECT_TRUE(Agree(Said(Took("b", 950)), cut));
  EXPECT_FALSE(Agree(cut, Said(Took("b", 800))));
}

TEST(Audit, ObservedValuesOfPassesAgreeIfTheyAreEqual) {
  const JobSpec passes{.source = looptree::BenchmarkUri{"benchmark://small-v0/qsort"},
                       .passes = {"mem2reg"}};
  const auto said = [&](std::string host, double instructions) {
    return OpinionOf(Counted(std::move(host), instructions), passes, Keys::kNone).value();
  };
  const Opinion a = said("a", 24);
  const Opinion odd = said("b", 25);
  const Opinion c = said("c", 24);
  EXPECT_TRUE(Agree(a, c));
  EXPECT_FALSE(Agree(a, odd));
  EXPECT_FALSE(Agree(a, Said(Took("b", 1000))));
  EXPECT_FALSE(Agree(a, Said(Failed("b", FailureCode::kCompileError))));
  const std::vector<Opinion> opinions = {a, odd, c};
  EXPECT_EQ(FindOutlier(opinions), (Odd{1, OddKind::kOther}));
  EXPECT_EQ(DifferencesOf(odd, opinions), "IrInstructionCount 25.0");
  EXPECT_EQ(DifferencesOf(a, std::vector{a, c}), "");
  const JobSpec probe{.source = looptree::BenchmarkUri{"probe://peaks-v0"}};
  EXPECT_FALSE(OpinionOf(Counted("a", 24), probe, Keys::kNone)) << "it tells of the host";
}

TEST(Audit, OfThreeTheOneThatTwoContradictIsOdd) {
  const Opinion a = Said(Took("a", 1000));
  const Opinion b = Said(Took("b", 1010));
  EXPECT_EQ(FindOutlier(std::vector{a, b}), std::nullopt);
  EXPECT_EQ(FindOutlier(std::vector{a, Said(Took("c", 700)), b}), (Odd{1, OddKind::kQuicker}));
  EXPECT_EQ(FindOutlier(std::vector{Said(Took("c", 1500)), a, b}), (Odd{0, OddKind::kSlower}));
  EXPECT_EQ(FindOutlier(std::vector{a, b, Said(Failed("c", FailureCode::kRunCrash))}),
            (Odd{2, OddKind::kOther}));
  EXPECT_EQ(FindOutlier(std::vector{a, Said(Took("b", 1500)), Said(Took("c", 2000))}),
            std::nullopt);
  EXPECT_EQ(FindOutlier(std::vector{a, b, b}), std::nullopt);
}

TEST(Audit, TheOddOneIsInDoubtElseAllThatDisagree) {
  const auto of_job = [](Opinion opinion, std::uint32_t index) {
    opinion.job = {kBatch, index};
    return opinion;
  };
  const Opinion a = of_job(Said(Took("a", 1000)), 1);
  const Opinion b = of_job(Said(Took("b", 1500)), 2);
  const Opinion c = of_job(Said(Took("c", 1010)), 3);
  const Opinion d = of_job(Said(Took("d", 3000)), 4);
  const auto jobs = [](std::initializer_list<std::uint32_t> indices) {
    std::vector<JobId> ids;
    for (const std::uint32_t index : indices) ids.push_back({kBatch, index});
    return ids;
  };
  EXPECT_EQ(InDoubt(std::vector{a, c}), jobs({}));
  EXPECT_EQ(InDoubt(std::vector{a, b}), jobs({1, 2}));
  EXPECT_EQ(InDoubt(std::vector{a, b, c}), jobs({2}));
  EXPECT_EQ(InDoubt(std::vector{a, b, d}), jobs({1, 2, 4}));
}

}  // namespace
}  // namespace loopfleet::client
