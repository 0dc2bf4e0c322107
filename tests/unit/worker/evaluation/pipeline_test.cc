#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "common/job/profile.h"
#include "common/looptree/tree/key.h"
#include "monitoring/host/core_plan.h"
#include "monitoring/registry.h"
#include "tests/unit/worker/processes/children_fixture.h"
#include "worker/evaluation/cpu_target.h"

namespace loopfleet::worker {
namespace {

class PipelineTest : public ChildrenFixture {
 protected:
  void SetUp() override {
    ChildrenFixture::SetUp();
    monitoring::WorkerLabels labels{
        .outcomes = {"ok", "RUN_CRASH", "WRONG_OUTPUT"},
        .stages = {"replay", "compile", "verify", "measure", "slot_overhead"},
        .children = {"compiler", "verifier", "executor"},
        .restart_reasons = RestartReasons(),
        .grades = {"A", "B", "C", "D"}};
    for (std::size_t i = 0; i < kSlotSteps; ++i) {
      labels.stages.emplace_back(SlotStepLabel(static_cast<SlotStep>(i)));
    }
    for (std::size_t i = 0; i < kActivities; ++i) {
      labels.activities.emplace_back(ActivityName(static_cast<Activity>(i)));
    }
    metrics_ = std::make_unique<monitoring::WorkerMetrics>(registry_, labels);
    const RestartListener ignore = [](ChildRole, ExitReason::Cause) {};
    compiler_ = std::make_unique<CompilerProcess>(*fork_server_, kHangLimit, ignore);
    reference_ =
        std::make_unique<ReferenceProcess>(*fork_server_, std::chrono::seconds(60), ignore);
    verifier_ = std::make_unique<ExecutorProcess>(
        *fork_server_,
        ExecutorProcess::Options{.role = ChildRole::kVerifier,
                                 .run_limit = kHangLimit,
                                 .new_number = GuessableNumbers()},
        ignore);
    executor_ = std::make_unique<ExecutorProcess>(
        *fork_server_, ExecutorProcess::Options{.run_limit = kHangLimit}, ignore);
    profiler_ = std::make_unique<ExecutorProcess>(
        *fork_server_,
        ExecutorProcess::Options{.role = ChildRole::kProfiler, .run_limit = kHangLimit}, ignore);
    Start({});
  }
  void TearDown() override { pipeline_.reset(); }

  void Start(CpuTarget::Options options) {
    Start(options, {{.compiler = *compiler_, .reference = *reference_, .verifier = *verifier_}});
  }
  void Start(CpuTarget::Options options, std::vector<CpuTarget::Preparer> preparers) {
    pipeline_.reset();  // also stops its slot for good
    slot_ = std::make_unique<TimingSlot>(
        TimingSlot::Options{},
        SlotLock::Open(monitoring::AllowedProcessors().value().back()).value(),
        TimingSlot::Children{.kernels = *executor_, .canaries = *executor_, .profiler = *profiler_},
        clock_);
    pipeline_ = std::make_unique<EvaluationPipeline<CpuTarget>>(
        options,
        CpuTarget::Parts{.preparers = std::move(preparers),
                         .slot = *slot_,
                         .device = *device_,
                         .awake = awake_,
                         .code = *code_,
                         .metrics = *metrics_,
                         .clock = clock_},
        Conditions{.compiler = backend_.compiler, .policy = "test", .isolation = "test"}, [this] {
          std::lock_guard lock(mutex_);
          ++finished_signals_;
          changed_.notify_all();
        });
  }

  static wire::Lease LeaseOf(std::uint64_t id, std::int64_t elements,
                             std::vector<looptree::Action> actions = {}) {
    JobSpec spec{.source = looptree::BenchmarkUri{AddUri(elements)}};
    spec.actions = std::move(actions);
    return {.lease = {id},
            .job = {.batch = {1}, .index = static_cast<std::uint32_t>(id)},
            .spec = std::move(spec)};
  }

  // The reports of `count` leases, by lease.
  std::map<std::uint64_t, Evaluation> Collect(std::size_t count) {
    std::map<std::uint64_t, Evaluation> evaluations;
    std::size_t total = 0;
    while (total < count) {
      for (wire::Report& report : pipeline_->TakeFinished()) {
        EXPECT_EQ(report.job.index, report.lease.value);
        evaluations[report.lease.value] = std::move(report.evaluation);
        ++total;
      }
      if (total >= count) break;
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return finished_signals_ > seen_signals_; })) {
        ADD_FAILURE() << "only " << total << " of " << count << " reports came";
        break;
      }
      seen_signals_ = finished_signals_;
    }
    return evaluations;
  }

  // Retries as the coordinator does: jobs for which a busy host gave no figure run again.
  std::map<std::uint64_t, Evaluation> Evaluate(const std::vector<wire::Lease>& leases) {
    constexpr int kTurns = 20;
    for (const wire::Lease& lease : leases) EXPECT_TRUE(pipeline_->Accept(lease));
    std::map<std::uint64_t, Evaluation> evaluations = Collect(leases.size());
    for (int turn = 1; turn < kTurns; ++turn) {
      std::size_t again = 0;
      for (const wire::Lease& lease : leases) {
        const auto found = evaluations.find(lease.lease.value);
        if (found == evaluations.end() || found->second.ok() ||
            found->second.failure().code != FailureCode::kUnstableTiming) {
          continue;
        }
        EXPECT_TRUE(pipeline_->Accept(lease));
        ++again;
      }
      for (auto& [id, evaluation] : Collect(again)) evaluations[id] = std::move(evaluation);
    }
    return evaluations;
  }

  const SystemClock clock_;
  monitoring::Registry registry_;
  std::unique_ptr<monitoring::WorkerMetrics> metrics_;
  std::unique_ptr<CompilerProcess> compiler_;
  std::unique_ptr<ReferenceProcess> reference_;
  std::unique_ptr<ExecutorProcess> verifier_;
  std::unique_ptr<ExecutorProcess> executor_;
  std::unique_ptr<ExecutorProcess> profiler_;
  std::unique_ptr<TimingSlot> slot_;
  // A device without known facts: no peaks, no contention baseline, no clock.
  inline static const DeviceReading kReading{.probe_steps = 1'000};
  AwakeCore awake_{monitoring::AllowedProcessors().value().back(), Nanos{0},
                   core_kernels::kPortable};
  std::optional<DeviceHealth> device_{std::in_place, DeviceHealth::Options{}, kReading,
                                      HardwareFacts{}};
  std::unique_ptr<EvaluationPipeline<CpuTarget>> pipeline_;

  std::mutex mutex_;
  std::condition_variable changed_;
  int finished_signals_ = 0;
  int seen_signals_ = 0;
};

TEST_F(PipelineTest, AnEvaluationIsComplete) {
  const auto evaluations = Evaluate({LeaseOf(1, 1024)});
  const Evaluation& evaluation = evaluations.at(1);
  ASSERT_TRUE(evaluation.ok()) << evaluation.failure().message;
  EXPECT_GE(evaluation.measurement().samples_ns.size(), 3U);
  EXPECT_GT(evaluation.measurement().elapsed_ns, 0);
  EXPECT_EQ(evaluation.flop_count, 1024U);
  EXPECT_EQ(evaluation.subject, looptree::KeyOf(AddOf(1024).start));
  ASSERT_TRUE(evaluation.conditions);
  EXPECT_EQ(evaluation.conditions->compiler.tier, "fake");
  EXPECT_EQ(evaluation.code_hash.size(), 32U);
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    EXPECT_GT(evaluation.stages[stage], Nanos{0}) << StageName(stage);
  }
  EXPECT_TRUE(pipeline_->Held().empty());
}

TEST_F(PipelineTest, NoGradeIsBetterThanTheHostAllows) {
  Start({.best_grade = Grade::kC});
  const auto evaluations = Evaluate({LeaseOf(1, 4096)});
  ASSERT_TRUE(evaluations.at(1).ok()) << evaluations.at(1).failure().message;
  EXPECT_GE(evaluations.at(1).measurement().grade, Grade::kC);  // D on a busy host
}

// The fake compiler knows no lines, and makes no copies that count.
TEST_F(PipelineTest, AProfileIsOfAVerifiedKernelAndIsNoFigure) {
  const auto profile_of = [](wire::Lease lease, ProfileLevel level) {
    lease.spec.profile = level;
    return lease;
  };
  const wire::Lease lines = profile_of(LeaseOf(1, 1024), ProfileLevel::kLines);
  const auto evaluations = Evaluate(
      {lines, profile_of(LeaseOf(2, 1024), ProfileLevel::kRoots), LeaseOf(3, 1024),
       profile_of(LeaseOf(4, static_cast<std::int64_t>(Fault::kWrongOutput)), ProfileLevel::kLines),
       profile_of(LeaseOf(5, static_cast<std::int64_t>(Fault::kRightOnce)), ProfileLevel::kLines),
       profile_of(LeaseOf(6, static_cast<std::int64_t>(Fault::kHang)), ProfileLevel::kRoots)});
  const Evaluation& evaluation = evaluations.at(1);
  ASSERT_TRUE(evaluation.ok()) << evaluation.failure().message;
  ASSERT_FALSE(evaluation.is_timed());
  EXPECT_EQ(evaluation.subject, ResolveProfile(lines.spec)->subject);
  EXPECT_EQ(evaluation.flop_count, 0U);
  const auto profile = ProfileOf(evaluation.observed());
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->code_hash.size(), 32U);
  EXPECT_GT(profile->run_ns, 0);
  EXPECT_EQ(profile->lines.back().place.part, ProfilePart::kOutside);
  EXPECT_GT(profile->lines.back().samples, 0);
  EXPECT_DOUBLE_EQ(profile->lines.back().share, 1);
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    EXPECT_GT(evaluation.stages[stage], Nanos{0}) << StageName(stage);
  }
  EXPECT_EQ(evaluations.at(2).failure().code, FailureCode::kCompileError);
  EXPECT_NE(evaluations.at(2).failure().message.find("where it counts"), std::string::npos);
  EXPECT_TRUE(evaluations.at(3).is_timed());
  EXPECT_EQ(evaluations.at(4).failure().code, FailureCode::kWrongOutput);
  EXPECT_EQ(evaluations.at(5).failure().code, FailureCode::kWrongOutput);
  EXPECT_EQ(evaluations.at(6).failure().code, FailureCode::kRunTimeout);
}

// A profile never holds two workloads: each may take all of the memory.
TEST_F(PipelineTest, AProfileNeedsMemoryForOneWorkload) {
  Start({.workloads = {.max_total_bytes = 1}});
  wire::Lease roots = LeaseOf(1, 1024);
  roots.spec.profile = ProfileLevel::kRoots;
  ASSERT_TRUE(pipeline_->Accept(roots));
  // As far as the fake compiler gets: both kernels were verified.
  const Evaluation evaluation = Collect(1).at(1);
  EXPECT_NE(evaluation.failure().message.find("where it counts"), std::string::npos);
}

TEST_F(PipelineTest, EveryFaultHasItsCodeAndTheOthersGoOn) {
  const std::map<Fault, FailureCode> faults = {
      {Fault::kWrongOutput, FailureCode::kWrongOutput},
      {Fault::kLastElementLeft, FailureCode::kWrongOutput},
      {Fault::kWholeNumbersOnly, FailureCode::kWrongOutput},
      {Fault::kWholeNumbersSlowly, FailureCode::kWrongOutput},
      {Fault::kBeside, FailureCode::kWrongOutput},
      {Fault::kPageBeside, FailureCode::kRunCrash},
      {Fault::kRightOnce, FailureCode::kWrongOutput},
      {Fault::kCrash, FailureCode::kRunCrash},
      {Fault::kIllegal, FailureCode::kRunCrash},
      {Fault::kExit, FailureCode::kRunCrash},
      {Fault::kJunk, FailureCode::kRunCrash},
      {Fault::kWritesInput, FailureCode::kRunCrash},
      {Fault::kHang, FailureCode::kRunTimeout},
      {Fault::kCompilerCrash, FailureCode::kCompileError},
      {Fault::kCompilerJunk, FailureCode::kCompileError},
      {Fault::kCompilerHang, FailureCode::kCompileTimeout},
      {Fault::kRefused, FailureCode::kUnsupported},
      {Fault::kNotLinkable, FailureCode::kCompileError},
      {Fault::kLongCode, FailureCode::kCompileError},
      {Fault::kHugeScratch, FailureCode::kRunOom},
  };
  std::uint64_t id = 0;
  std::vector<wire::Lease> leases;
  for (const auto& [fault, code] : faults) {
    leases.push_back(LeaseOf(++id, static_cast<std::int64_t>(fault)));
    leases.push_back(LeaseOf(++id, 1024));
  }
  const auto evaluations = Evaluate(leases);
  id = 0;
  for (const auto& [fault, code] : faults) {
    const Evaluation& faulty = evaluations.at(++id);
    ASSERT_FALSE(faulty.ok()) << static_cast<int>(fault);
    EXPECT_EQ(InfoOf(faulty.failure().code).name, InfoOf(code).name) << faulty.failure().message;
    EXPECT_TRUE(faulty.subject && faulty.conditions);
    const Evaluation& good = evaluations.at(++id);
    EXPECT_TRUE(good.ok()) << good.failure().message;
  }
}

// Its child still runs it when the next kernel arrives.
TEST_F(PipelineTest, AKernelThatLoopsAfterItsAnswerCostsNoOtherItsTurn) {
  const auto evaluations =
      Evaluate({LeaseOf(1, static_cast<std::int64_t>(Fault::kForgedThenLoop)), LeaseOf(2, 1024)});
  ASSERT_FALSE(evaluations.at(1).ok());
  EXPECT_EQ(evaluations.at(1).failure().code, FailureCode::kRunCrash);
  EXPECT_TRUE(evaluations.at(2).ok()) << evaluations.at(2).failure().message;
}

// With two preparing threads, one compilation that takes as long as it may holds up no other job.
// A busy host may need longer for the others: then it may take longer, too.
TEST_F(PipelineTest, ASlowCompilationKeepsNoOtherJobFromTheSlot) {
  constexpr std::size_t kOthers = 20;
  const RestartListener ignore = [](ChildRole, ExitReason::Cause) {};
  bool came_last = false;
  for (const int limit_s : {5, 15, 45}) {
    const std::chrono::seconds slow{limit_s};
    CompilerProcess compilers[] = {{*fork_server_, slow, ignore}, {*fork_server_, slow, ignore}};
    ReferenceProcess reference(*fork_server_, std::chrono::seconds(60), ignore);
    ExecutorProcess verifier(*fork_server_, {.role = ChildRole::kVerifier, .run_limit = kHangLimit},
                             ignore);
    Start({}, {{.compiler = compilers[0], .reference = *reference_, .verifier = *verifier_},
               {.compiler = compilers[1], .reference = reference, .verifier = verifier}});
    ASSERT_TRUE(pipeline_->Accept(LeaseOf(1, static_cast<std::int64_t>(Fault::kCompilerHang))));
    for (std::uint64_t id = 2; id < 2 + kOthers; ++id) {
      wire::Lease lease = LeaseOf(id, 1024);
      lease.spec.freshness = Freshness::kMeasureAgain;
      ASSERT_TRUE(pipeline_->Accept(lease));
    }
    auto evaluations = Collect(kOthers);
    came_last = !evaluations.contains(1);
    evaluations.merge(Collect(1 + kOthers - evaluations.size()));
    EXPECT_EQ(evaluations.at(1).failure().code, FailureCode::kCompileTimeout);
    pipeline_.reset();
    if (came_last) break;
  }
  EXPECT_TRUE(came_last) << "the others came after the slow one";
}

TEST_F(PipelineTest, AKernelMeasuredBeforeIsNotMeasuredAgain) {
  const auto first = Evaluate({LeaseOf(1, 1024)});
  ASSERT_TRUE(first.at(1).ok()) << first.at(1).failure().message;
  EXPECT_FALSE(first.at(1).same_code);
  if (first.at(1).measurement().grade > Grade::kB) GTEST_SKIP() << "the host is too busy";
  const auto second = Evaluate({LeaseOf(2, 1024)});
  EXPECT_TRUE(second.at(2).same_code);
  EXPECT_EQ(second.at(2).measurement(), first.at(1).measurement());
  EXPECT_EQ(second.at(2).stages[Stage::kMeasure], Nanos{0});
  wire::Lease fresh = LeaseOf(3, 1024);
  fresh.spec.freshness = Freshness::kMeasureAgain;
  EXPECT_FALSE(Evaluate({fresh}).at(3).same_code);
}

// Every reading differs from the first by more than the tolerance.
TEST_F(PipelineTest, AFigureOfADriftingCoreIsNotCopied) {
  pipeline_.reset();
  device_.emplace(
      DeviceHealth::Options{.canary_interval = std::chrono::milliseconds(1),
                            .canaries = {.window = 1, .tolerance = {1e-12, 1e-12, 1e-12}}},
      kReading, HardwareFacts{});
  Start({});
  const auto first = Evaluate({LeaseOf(1, 1024)});
  ASSERT_TRUE(first.at(1).ok()) << first.at(1).failure().message;
  if (first.at(1).measurement().grade > Grade::kB) GTEST_SKIP() << "the host is too busy";
  for (int readings = 0; readings < 3; ++readings) {  // one begins after another was heeded
    const double before = device_->health().ratio;
    while (device_->health().ratio == before) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  EXPECT_FALSE(Evaluate({LeaseOf(2, 1024)}).at(2).same_code);
}

// The store knows the machine code: the kernel is verified here, and not timed.
TEST_F(PipelineTest, AKernelThatTheStoreKnowsIsVerifiedAndNotMeasured) {
  // Returns how many questions it answered.
  const auto answer_at = [&](double clock_mhz) {
    constexpr double kKnown = 1234.5;
    const auto lookups = pipeline_->TakeCodeLookups();
    for (const wire::CodeLookup& lookup : lookups) {
      Evaluation found{.verdict = Measurement{.elapsed_ns = kKnown,
                                              .elapsed_low_ns = kKnown,
                                              .elapsed_high_ns = kKnown,
                                              .elapsed_min_ns = kKnown,
                                              .elapsed_mean_ns = kKnown},
                       .conditions = Conditions{}};
      found.conditions->hardware.clock_mhz = clock_mhz;
      pipeline_->Answer({.lease = lookup.lease, .found = std::move(found)});
    }
    std::this_thread::yield();
    return lookups.size();
  };
  const double clock_mhz = device_->hardware().clock_mhz;
  Start({.lookup_patience = std::chrono::seconds(60)});
  ASSERT_TRUE(pipeline_->Accept(LeaseOf(1, 1024)));
  while (answer_at(clock_mhz) == 0) continue;
  const Evaluation stored = Collect(1).at(1);
  ASSERT_TRUE(stored.ok()) << stored.failure().message;
  EXPECT_TRUE(stored.same_code);
  EXPECT_EQ(stored.measurement().elapsed_ns, 1234.5);
  EXPECT_GT(stored.stages[Stage::kVerify], Nanos{0});
  EXPECT_EQ(stored.stages[Stage::kMeasure], Nanos{0});

  ASSERT_TRUE(pipeline_->Accept(LeaseOf(2, 1024)));
  while (answer_at(clock_mhz + 100) == 0) continue;
  EXPECT_FALSE(Collect(1).at(2).same_code) << "it is stated at another clock";

  // The kernel may be found wrong before its question can be answered.
  ASSERT_TRUE(pipeline_->Accept(LeaseOf(3, static_cast<std::int64_t>(Fault::kWrongOutput))));
  std::vector<wire::Report> wrong;
  while (wrong.empty()) {
    answer_at(clock_mhz);
    wrong = pipeline_->TakeFinished();
  }
  EXPECT_FALSE(wrong.front().evaluation.ok()) << "no figure makes a wrong kernel right";
}

TEST_F(PipelineTest, AWrongKernelIsNeverTimed) {
  ASSERT_TRUE(pipeline_->Accept(LeaseOf(1, static_cast<std::int64_t>(Fault::kWrongOutput))));
  const auto evaluations = Collect(1);
  ASSERT_FALSE(evaluations.at(1).ok());
  EXPECT_EQ(evaluations.at(1).stages[Stage::kMeasure], Nanos{0});
}

TEST_F(PipelineTest, MoreThreadsThanThereAreIsForAnotherWorker) {
  wire::Lease lease = LeaseOf(1, 1024);
  lease.spec.threads = 4;
  ASSERT_TRUE(pipeline_->Accept(lease));
  const Evaluation evaluation = Collect(1).at(1);
  EXPECT_EQ(evaluation.failure().code, FailureCode::kNoMatchingWorker);
}

TEST_F(PipelineTest, ARunWithoutEndIsCutUntimed) {
  wire::Lease lease = LeaseOf(1, static_cast<std::int64_t>(Fault::kHang));
  lease.spec.cut_above_ns = 1'000'000;
  ASSERT_TRUE(pipeline_->Accept(lease));
  const Evaluation evaluation = Collect(1).at(1);
  ASSERT_FALSE(evaluation.ok());
  EXPECT_EQ(evaluation.failure().code, FailureCode::kCut);
  EXPECT_EQ(evaluation.stages[Stage::kMeasure], Nanos{0});
}

TEST_F(PipelineTest, CutAndColdAreAsTheJobAsks) {
  wire::Lease cut = LeaseOf(1, 1 << 20);
  cut.spec.cut_above_ns = 1;
  wire::Lease cold = LeaseOf(2, 1024);
  cold.spec.cache = CacheState::kCold;
  cold.spec.budget_ms = 50;
  ASSERT_TRUE(pipeline_->Accept(cut));
  ASSERT_TRUE(pipeline_->Accept(cold));
  const auto evaluations = Collect(2);
  // A host too busy to accept a sample does not cut the job.
  if (!evaluations.at(1).ok()) {
    const FailureCode code = evaluations.at(1).failure().code;
    EXPECT_TRUE(code == FailureCode::kCut || code == FailureCode::kUnstableTiming);
  }
  ASSERT_TRUE(evaluations.at(2).conditions);
  EXPECT_EQ(evaluations.at(2).conditions->cache, CacheState::kCold);
  if (evaluations.at(2).ok()) {  // on a busy host a single run may give no figure
    EXPECT_EQ(evaluations.at(2).measurement().iterations_per_sample, 1U);
  } else {
    EXPECT_EQ(evaluations.at(2).failure().code, FailureCode::kUnstableTiming);
  }
}

TEST_F(PipelineTest, WhatCannotBeRebuiltIsAFailureOfTheJob) {
  wire::Lease invalid = LeaseOf(1, 1024);
  invalid.spec.source = looptree::BenchmarkUri{"benchmark://loop_tool-cpu-v0/0"};
  wire::Lease senseless = LeaseOf(2, 1024);
  senseless.spec.threads = 0;
  wire::Lease illegal = LeaseOf(3, 1024, {looptree::SwapUp{}});
  ASSERT_TRUE(pipeline_->Accept(invalid));
  ASSERT_TRUE(pipeline_->Accept(senseless));
  ASSERT_TRUE(pipeline_->Accept(illegal));
  const auto evaluations = Collect(3);
  EXPECT_EQ(evaluations.at(1).failure().code, FailureCode::kInvalidBenchmark);
  EXPECT_EQ(evaluations.at(2).failure().code, FailureCode::kMalformed);
  EXPECT_EQ(evaluations.at(3).failure().code, FailureCode::kInvalidAction);
  EXPECT_EQ(evaluations.at(3).failure().action_index, 0U);
}

TEST_F(PipelineTest, TensorsBeyondTheBoundAreNotEvenMade) {
  Start({.max_tensor_bytes = 1000});
  const auto evaluations = Evaluate({LeaseOf(1, 1024), LeaseOf(2, 16)});
  EXPECT_EQ(evaluations.at(1).failure().code, FailureCode::kRunOom);
  EXPECT_TRUE(evaluations.at(2).ok()) << evaluations.at(2).failure().message;
}

TEST_F(PipelineTest, WorkBeyondWhatCanBeVerifiedIsRefused) {
  Start({});
  wire::Lease too_much = LeaseOf(1, 1024);
  too_much.spec.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm4096_4096_4096"};
  ASSERT_TRUE(pipeline_->Accept(too_much));
  EXPECT_EQ(Collect(1).at(1).failure().code, FailureCode::kLimitFlops);
}

TEST_F(PipelineTest, NeverHoldsMoreThanItsBoundNorOneLeaseTwice) {
  Start({.max_held = 2});
  // The first one hangs, so that nothing finishes meanwhile.
  ASSERT_TRUE(pipeline_->Accept(LeaseOf(1, static_cast<std::int64_t>(Fault::kHang))));
  ASSERT_TRUE(pipeline_->Accept(LeaseOf(2, 1024)));
  EXPECT_FALSE(pipeline_->Accept(LeaseOf(3, 1024)));
  const auto evaluations = Collect(2);
  EXPECT_EQ(evaluations.size(), 2U);
  EXPECT_TRUE(pipeline_->Accept(LeaseOf(3, 1024)));
  EXPECT_TRUE(pipeline_->Accept(LeaseOf(3, 1024)));
  EXPECT_EQ(Collect(1).size(), 1U);
}

TEST_F(PipelineTest, DroppedLeasesAreNeitherRunNorReported) {
  ASSERT_TRUE(pipeline_->Accept(LeaseOf(1, static_cast<std::int64_t>(Fault::kCompilerHang))));
  for (std::uint64_t id = 2; id <= 10; ++id) ASSERT_TRUE(pipeline_->Accept(LeaseOf(id, 1024)));
  const std::vector<LeaseId> dropped = {{1}, {3}, {5}, {7}};
  pipeline_->Drop(dropped);
  const auto evaluations = Collect(6);
  std::set<std::uint64_t> reported;
  for (const auto& [id, evaluation] : evaluations) reported.insert(id);
  EXPECT_EQ(reported, (std::set<std::uint64_t>{2, 4, 6, 8, 9, 10}));
  EXPECT_TRUE(pipeline_->Held().empty());
}

TEST_F(PipelineTest, DropUnstartedGivesBackAllButTheOneOnTheSlot) {
  // Nothing tells the test when a job reaches the slot, so the wait doubles until the first one
  // has.
  std::uint64_t id = 0;
  bool was_seen = false;
  for (auto given = std::chrono::milliseconds(10); !was_seen && given.count() < 30'000;
       given *= 2) {
    const auto slow = static_cast<std::int64_t>(Fault::kSlow);
    const LeaseId first{++id};
    ASSERT_TRUE(pipeline_->Accept(LeaseOf(id, slow)));
    std::this_thread::sleep_for(given);
    for (int i = 0; i < 9; ++i) ASSERT_TRUE(pipeline_->Accept(LeaseOf(++id, slow)));
    const std::vector<LeaseId> dropped = pipeline_->DropUnstarted();
    const auto rest = pipeline_->Held();
    EXPECT_EQ(dropped.size() + rest.size(), 10U);
    EXPECT_EQ(Collect(rest.size()).size(), rest.size());  // leases that were not given back finish
    was_seen = std::ranges::count(dropped, first) == 0 && !dropped.empty();
  }
  EXPECT_TRUE(was_seen);
}

// While they are timed, others are prepared. A round of three such runs takes 180 ms, and ends
// them.
TEST_F(PipelineTest, OfLongKernelsTwoAreOnTheSlot) {
  constexpr std::size_t kLeases = 8;
  for (std::uint64_t id = 1; id <= kLeases; ++id) {
    ASSERT_TRUE(
        pipeline_->Accept(LeaseOf(id, static_cast<std::int64_t>(Fault::kWholeNumbersSlowly))));
  }
  std::size_t reported = Collect(2).size();
  const std::vector<LeaseId> dropped = pipeline_->DropUnstarted();
  reported += pipeline_->TakeFinished().size();
  const auto rest = pipeline_->Held();
  EXPECT_EQ(reported + dropped.size() + rest.size(), kLeases);
  EXPECT_LE(rest.size(), 2U);
  Collect(rest.size());
}

// Memory for one big job at a time, so that each preparation waits for another job's memory.
TEST_F(PipelineTest, EndsWhileMemoryIsWaitedFor) {
  constexpr std::int64_t kBig = 2'000'000;
  for (int round = 0; round < 5; ++round) {
    seen_signals_ = finished_signals_ = 0;
    Start({.max_again = 1, .arenas = {.max_bytes = std::size_t{12} << 20}});
    for (std::uint64_t id = 1; id <= 40; ++id) {
      ASSERT_TRUE(pipeline_->Accept(LeaseOf(id, id % 4 == 1 ? 1024 : kBig)));
    }
    EXPECT_GE(Collect(1).size(), 1U);
    pipeline_.reset();
  }
}

TEST_F(PipelineTest, EndsWhileWorkIsUnderWay) {
  for (std::uint64_t id = 1; id <= 20; ++id) ASSERT_TRUE(pipeline_->Accept(LeaseOf(id, 1024)));
  pipeline_.reset();
}

}  // namespace
}  // namespace loopfleet::worker
