// GpuTarget in its pipeline on a scripted device: the effect of each fault on the job, on other
// jobs, and on the device.

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "common/job/profile.h"
#include "monitoring/registry.h"
#include "tests/unit/worker/gpu/device/scripted_device.h"
#include "worker/gpu/device/gpu_target.h"

namespace loopfleet::worker {
namespace {

class GpuPipelineTest : public ScriptedDevice {
 protected:
  void SetUp() override {
    ScriptedDevice::SetUp();
    constexpr std::array kChildren = {ChildRole::kCompiler, ChildRole::kReference,
                                      ChildRole::kDevice};
    metrics_ = std::make_unique<monitoring::WorkerMetrics>(registry_, MetricLabels(kChildren));
    const RestartListener ignore = [](ChildRole, ExitReason::Cause) {};
    compiler_ = std::make_unique<CompilerProcess>(*fork_server_, kPatience, ignore);
    reference_ = std::make_unique<ReferenceProcess>(*fork_server_, kPatience, ignore);
    device_ = std::make_unique<GpuProcess>(
        *fork_server_, GpuProcess::Options{.run_limit = kPatience, .patience = kPatience}, ignore);
    retirement_.OnRetire([this] { Wake(); });
    pipeline_ = std::make_unique<EvaluationPipeline<GpuTarget>>(
        GpuTarget::Options{
            .after_fault = std::chrono::milliseconds(1), .workloads = {}, .arenas = {}},
        GpuTarget::Parts{.preparers = {{.compiler = *compiler_, .reference = *reference_}},
                         .device = *device_,
                         .retirement = retirement_,
                         .metrics = *metrics_,
                         .clock = clock_},
        Conditions{.compiler = backend_.compiler, .policy = "test", .isolation = "test"},
        [this] { Wake(); });
  }
  void TearDown() override {
    pipeline_.reset();
    device_.reset();
    reference_.reset();
    compiler_.reset();
    ScriptedDevice::TearDown();
  }

  void Wake() {
    std::lock_guard lock(mutex_);
    ++wakes_;
    changed_.notify_all();
  }
  // Waits until `done` holds. Evaluates it again after each wake-up.
  template <class Done>
  void Await(const Done& done) {
    for (;;) {
      std::uint64_t seen = 0;
      {
        std::lock_guard lock(mutex_);
        seen = wakes_;
      }
      if (done()) return;
      std::unique_lock lock(mutex_);
      ASSERT_TRUE(changed_.wait_for(lock, kPatience, [&] { return wakes_ > seen; }));
    }
  }

  // The lease id is the number of elements.
  static wire::Lease LeaseOf(std::int64_t elements) {
    return {.lease = {static_cast<std::uint64_t>(elements)},
            .job = {.batch = {1}, .index = static_cast<std::uint32_t>(elements)},
            .spec = {.source = looptree::BenchmarkUri{Uri(elements)}}};
  }
  static wire::Lease ProfileLease(std::int64_t elements,
                                  ProfileLevel level = ProfileLevel::kRoots) {
    wire::Lease lease = LeaseOf(elements);
    lease.spec.profile = level;
    return lease;
  }
  std::map<std::int64_t, Evaluation> Evaluate(const std::vector<std::int64_t>& sizes) {
    std::vector<wire::Lease> leases;
    for (const std::int64_t size : sizes) leases.push_back(LeaseOf(size));
    return EvaluateLeases(leases);
  }
  std::map<std::int64_t, Evaluation> EvaluateLeases(const std::vector<wire::Lease>& leases) {
    for (const wire::Lease& lease : leases) EXPECT_TRUE(pipeline_->Accept(lease));
    std::map<std::int64_t, Evaluation> evaluations;
    Await([&] {
      for (wire::Report& report : pipeline_->TakeFinished()) {
        evaluations[static_cast<std::int64_t>(report.lease.value)] = std::move(report.evaluation);
      }
      return evaluations.size() == leases.size();
    });
    return evaluations;
  }
  Evaluation Evaluate(DeviceFate fate) {
    return Evaluate({static_cast<std::int64_t>(fate)}).begin()->second;
  }

  const SystemClock clock_;
  monitoring::Registry registry_;
  std::unique_ptr<monitoring::WorkerMetrics> metrics_;
  std::unique_ptr<CompilerProcess> compiler_;
  std::unique_ptr<ReferenceProcess> reference_;
  std::unique_ptr<GpuProcess> device_;
  DeviceRetirement retirement_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t wakes_ = 0;
  std::unique_ptr<EvaluationPipeline<GpuTarget>> pipeline_;
};

TEST_F(GpuPipelineTest, AFigureWithAllThatBelongsToIt) {
  const Evaluation evaluation = Evaluate({1000}).at(1000);
  ASSERT_TRUE(evaluation.ok()) << evaluation.failure().message;
  EXPECT_EQ(evaluation.measurement().elapsed_ns, 5000);
  EXPECT_EQ(evaluation.measurement().device->temperature_c, 50);
  EXPECT_EQ(evaluation.flop_count, 1000U);
  EXPECT_TRUE(evaluation.subject.has_value());
  EXPECT_FALSE(evaluation.code_hash.empty());
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    EXPECT_GT(evaluation.stages[stage], Nanos{0}) << StageName(stage);
  }
}

TEST_F(GpuPipelineTest, AProfileByRootsIsNoFigure) {
  const wire::Lease lease = ProfileLease(1000);
  const Evaluation evaluation = EvaluateLeases({lease}).at(1000);
  ASSERT_TRUE(evaluation.ok()) << evaluation.failure().message;
  ASSERT_FALSE(evaluation.is_timed());
  EXPECT_EQ(evaluation.subject, ResolveProfile(lease.spec)->subject);
  EXPECT_EQ(evaluation.flop_count, 0U);
  EXPECT_TRUE(evaluation.code_hash.empty());
  EXPECT_EQ(WhyNoProfile(lease.spec, evaluation.observed()), std::nullopt);
  const auto profile = ProfileOf(evaluation.observed());
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->code_hash.size(), 32U);
  EXPECT_EQ(profile->run_ns, 1000);
  EXPECT_NEAR(profile->overhead, 0.05, 1e-12);
  ASSERT_EQ(profile->lines.size(), 3U);
  EXPECT_EQ(profile->lines[0].place, (ProfilePlace{.ref = 0}));
  EXPECT_DOUBLE_EQ(profile->lines[0].share, 0.2);
  EXPECT_EQ(profile->lines[1].place, (ProfilePlace{.ref = 3}));
  EXPECT_DOUBLE_EQ(profile->lines[1].share, 0.8);
}

TEST_F(GpuPipelineTest, ProfilesThatFailSayWhyAndSpareTheOthers) {
  const auto sized = [](DeviceFate fate) { return static_cast<std::int64_t>(fate); };
  const auto evaluations = EvaluateLeases(
      {ProfileLease(1000, ProfileLevel::kLoops), ProfileLease(1001, ProfileLevel::kLines),
       ProfileLease(sized(DeviceFate::kSticky)), ProfileLease(sized(DeviceFate::kStickyWhenTimed)),
       ProfileLease(sized(DeviceFate::kWrongWhenTimed)), ProfileLease(1002), LeaseOf(1003)});
  for (const std::int64_t size : {1000, 1001}) {
    ASSERT_FALSE(evaluations.at(size).ok());
    EXPECT_EQ(evaluations.at(size).failure().code, FailureCode::kUnsupported);
    EXPECT_NE(evaluations.at(size).failure().message.find("'roots'"), std::string::npos);
  }
  for (const auto& [fate, code] :
       {std::pair(DeviceFate::kSticky, FailureCode::kRunCrash),
        std::pair(DeviceFate::kStickyWhenTimed, FailureCode::kRunCrash),
        std::pair(DeviceFate::kWrongWhenTimed, FailureCode::kWrongOutput)}) {
    ASSERT_FALSE(evaluations.at(sized(fate)).ok()) << sized(fate);
    EXPECT_EQ(evaluations.at(sized(fate)).failure().code, code) << sized(fate);
  }
  EXPECT_TRUE(evaluations.at(1002).ok());
  EXPECT_TRUE(evaluations.at(1003).ok());
  EXPECT_FALSE(retirement_.reason());
}

TEST_F(GpuPipelineTest, WhatEndsAJobSparesTheOthers) {
  const std::vector<std::pair<DeviceFate, FailureCode>> fates = {
      {DeviceFate::kSticky, FailureCode::kRunCrash},
      {DeviceFate::kHangNoticed, FailureCode::kRunTimeout},
      {DeviceFate::kCrash, FailureCode::kRunCrash},
      {DeviceFate::kWrongOutput, FailureCode::kWrongOutput},
      {DeviceFate::kWrongWhenTimed, FailureCode::kWrongOutput},
      {DeviceFate::kNoMemory, FailureCode::kRunOom},
      {DeviceFate::kFault, FailureCode::kDeviceFault}};
  std::vector<std::int64_t> sizes;
  for (const auto& [fate, code] : fates) {
    sizes.push_back(static_cast<std::int64_t>(fate));
    sizes.push_back(2000 + static_cast<std::int64_t>(sizes.size()));
  }
  const auto evaluations = Evaluate(sizes);
  for (const auto& [fate, code] : fates) {
    const Evaluation& evaluation = evaluations.at(static_cast<std::int64_t>(fate));
    ASSERT_FALSE(evaluation.ok()) << static_cast<int>(fate);
    EXPECT_EQ(evaluation.failure().code, code) << static_cast<int>(fate);
  }
  for (const std::int64_t size : sizes) {
    if (size >= 2000) {
      EXPECT_TRUE(evaluations.at(size).ok()) << size;
    }
  }
  EXPECT_FALSE(retirement_.reason());
}

TEST_F(GpuPipelineTest, AJobForAProcessorIsNotRun) {
  wire::Lease lease = LeaseOf(1000);
  lease.spec.source = looptree::BenchmarkUri{AddUri(1000)};
  ASSERT_TRUE(pipeline_->Accept(lease));
  std::vector<wire::Report> reports;
  Await([&] {
    reports = pipeline_->TakeFinished();
    return !reports.empty();
  });
  EXPECT_EQ(reports[0].evaluation.failure().code, FailureCode::kNoMatchingWorker);
  EXPECT_EQ(shared_->children, 0);
}

// Three checks in a row fail and the fourth passes: the device is not given up.
TEST_F(GpuPipelineTest, ChecksThatFailDelayTheNextJob) {
  shared_->failing_checks = 3;
  EXPECT_TRUE(Evaluate({1000}).at(1000).ok());
  EXPECT_EQ(shared_->checks, 4);
  EXPECT_FALSE(retirement_.reason());
}

// A job has three attempts, so a single job cannot have the device given up. A success resets the
// count.
TEST_F(GpuPipelineTest, FaultsInARowAreCounted) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Evaluate(DeviceFate::kFault).failure().code, FailureCode::kDeviceFault);
  }
  EXPECT_TRUE(Evaluate({1000}).at(1000).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Evaluate(DeviceFate::kFault).failure().code, FailureCode::kDeviceFault);
  }
  EXPECT_FALSE(retirement_.reason());
  EXPECT_EQ(Evaluate(DeviceFate::kFault).failure().code, FailureCode::kDeviceFault);
  Await([&] { return retirement_.reason().has_value(); });
  EXPECT_NE(retirement_.reason()->find("failed 4 times in a row"), std::string::npos);
}

TEST_F(GpuPipelineTest, ADeviceThatIsGivenUpGivesItsLeasesBack) {
  shared_->failing_checks = 1'000'000;
  for (std::int64_t size = 1000; size < 1006; ++size) {
    ASSERT_TRUE(pipeline_->Accept(LeaseOf(size)));
  }
  Await([&] { return retirement_.reason().has_value(); });
  EXPECT_EQ(shared_->checks, 4);
  EXPECT_EQ(pipeline_->DropUnstarted().size(), 6U);
  EXPECT_TRUE(pipeline_->TakeFinished().empty());
  EXPECT_TRUE(pipeline_->Held().empty());
}

TEST_F(GpuPipelineTest, WhatIsDroppedIsNotReported) {
  ASSERT_TRUE(pipeline_->Accept(LeaseOf(1000)));
  const std::vector<LeaseId> dropped = {LeaseId{1000}};
  pipeline_->Drop(dropped);
  EXPECT_TRUE(Evaluate({1001}).at(1001).ok());
  EXPECT_TRUE(pipeline_->TakeFinished().empty());
}

}  // namespace
}  // namespace loopfleet::worker
