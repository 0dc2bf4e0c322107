// The life cycle of the device child, seen from the daemon.

#include "worker/gpu/device/gpu_process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/worker/gpu/device/scripted_device.h"
#include "tests/unit/worker/verification/workload_here.h"

namespace loopfleet::worker {
namespace {

class GpuProcessTest : public ScriptedDevice {
 protected:
  void SetUp() override {
    ScriptedDevice::SetUp();
    Use({.run_limit = kPatience, .patience = kPatience});
  }
  void TearDown() override {
    process_.reset();
    ScriptedDevice::TearDown();
  }
  void Use(const GpuProcess::Options& options) {
    process_ = std::make_unique<GpuProcess>(*fork_server_, options, Listener());
  }

  GpuCall CallOf(std::int64_t elements) {
    const auto benchmark = looptree::OpenBenchmark(looptree::BenchmarkUri{Uri(elements)}).value();
    const auto count = static_cast<std::uint64_t>(elements);
    GpuCall call{.image = "image", .specs = {}, .workload = nullptr, .arena = nullptr};
    for (const auto role :
         {BufferSpec::Role::kInput, BufferSpec::Role::kInput, BufferSpec::Role::kOutput}) {
      call.specs.push_back({.role = role, .element_count = count});
    }
    call.workload = workloads_.Get(benchmark.start, ComputeHere).value();
    call.arena =
        arenas_
            .Take(LayOut(std::vector<std::uint64_t>{count}, call.workload->layout.buffers.size()))
            .value();
    call.arena->Poison();
    return call;
  }
  std::expected<Nanos, Failure> Run(DeviceFate fate) {
    return process_->Run(CallOf(static_cast<std::int64_t>(fate)));
  }
  // The device runs kernels again, after exactly one more check.
  void ExpectWellAgain() {
    const int checks = shared_->checks;
    ASSERT_TRUE(process_->EnsureReady());
    EXPECT_EQ(shared_->checks, checks + 1);
    const GpuCall call = CallOf(1000);
    const auto ran = process_->Run(call);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_TRUE(call.arena->Check(call.workload->expected));
  }
  void ExpectReplaced(ExitReason::Cause cause) {
    ASSERT_EQ(restarts_.size(), 1U);
    EXPECT_EQ(restarts_[0].first, ChildRole::kDevice);
    EXPECT_EQ(restarts_[0].second, cause);
  }

  WorkloadCache workloads_{{}};
  GuardedBufferPool arenas_{{}};
  std::unique_ptr<GpuProcess> process_;
};

TEST_F(GpuProcessTest, NothingRunsBeforeTheCheck) {
  const auto ran = Run(static_cast<DeviceFate>(1000));
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, FailureCode::kDeviceFault);
  EXPECT_EQ(shared_->children, 0);
}

TEST_F(GpuProcessTest, OneCheckServesManyKernels) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(process_->EnsureReady());
    const GpuCall call = CallOf(1000 + i);
    const auto ran = process_->Run(call);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(*ran, Nanos(1000));
    EXPECT_TRUE(call.arena->Check(call.workload->expected));
    call.arena->Poison();
    const auto samples = process_->Time({}, *ran);
    ASSERT_TRUE(samples) << samples.error().message;
    EXPECT_EQ(samples->samples.ns.size(), 5U);
    EXPECT_EQ(samples->state->power_w, 200);
    EXPECT_TRUE(call.arena->Check(call.workload->expected));
    call.arena->Poison();
    const auto times = process_->TimeLaunches(*ran);
    ASSERT_TRUE(times) << times.error().message;
    EXPECT_EQ(times->turns.size(), 7U);
    EXPECT_TRUE(call.arena->Check(call.workload->expected));
  }
  EXPECT_EQ(shared_->checks, 1);
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(GpuProcessTest, AStickyErrorCostsTheChild) {
  ASSERT_TRUE(process_->EnsureReady());
  const auto ran = Run(DeviceFate::kSticky);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, FailureCode::kRunCrash);
  EXPECT_EQ(ran.error().message, "as the script says");
  ExpectReplaced(ExitReason::Cause::kSignal);
  ExpectWellAgain();
  EXPECT_EQ(shared_->children, 2);
}

TEST_F(GpuProcessTest, AKernelThatTheChildGaveUpCostsIt) {
  ASSERT_TRUE(process_->EnsureReady());
  EXPECT_EQ(Run(DeviceFate::kHangNoticed).error().code, FailureCode::kRunTimeout);
  ExpectReplaced(ExitReason::Cause::kTimeout);
  ExpectWellAgain();
}

TEST_F(GpuProcessTest, AChildThatHangsIsKilled) {
  ASSERT_TRUE(process_->EnsureReady());
  Use({.run_limit = std::chrono::milliseconds(50), .patience = kHangLimit});
  ASSERT_TRUE(process_->EnsureReady());
  const auto ran = Run(DeviceFate::kHang);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, FailureCode::kRunTimeout);
  EXPECT_NE(ran.error().message.find("longer than 50 ms"), std::string::npos);
  ExpectReplaced(ExitReason::Cause::kTimeout);
  ExpectWellAgain();
}

// As by the system's out-of-memory killer. The next job is not to blame.
TEST_F(GpuProcessTest, AnIdleChildThatEndedIsReplacedBeforeTheNextJob) {
  ASSERT_TRUE(process_->EnsureReady());
  const auto has_ended = [pid = shared_->last_child.load()] {
    std::string stat;
    std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), stat);
    return stat.empty() || stat.contains(") Z ");
  };
  ASSERT_EQ(::kill(shared_->last_child, SIGKILL), 0);
  while (!has_ended()) std::this_thread::yield();
  ExpectWellAgain();
  ExpectReplaced(ExitReason::Cause::kMemory);
  EXPECT_EQ(shared_->children, 2);
}

TEST_F(GpuProcessTest, ADriverThatTakesTheChildWithIt) {
  ASSERT_TRUE(process_->EnsureReady());
  const auto ran = Run(DeviceFate::kCrash);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, FailureCode::kRunCrash);
  ExpectReplaced(ExitReason::Cause::kSignal);
  ExpectWellAgain();
}

TEST_F(GpuProcessTest, AnEndWithoutAnAnswerAndJunkAreTheKernels) {
  for (const auto& [fate, cause] : {std::pair(DeviceFate::kExit, ExitReason::Cause::kExit),
                                    std::pair(DeviceFate::kJunk, ExitReason::Cause::kJunk)}) {
    restarts_.clear();
    ASSERT_TRUE(process_->EnsureReady());
    EXPECT_EQ(Run(fate).error().code, FailureCode::kRunCrash);
    ExpectReplaced(cause);
  }
  ExpectWellAgain();
}

TEST_F(GpuProcessTest, WhatTheDeviceForgetsCostsNothing) {
  ASSERT_TRUE(process_->EnsureReady());
  EXPECT_EQ(Run(DeviceFate::kNoMemory).error().code, FailureCode::kRunOom);
  EXPECT_TRUE(restarts_.empty());
  ASSERT_TRUE(process_->EnsureReady());
  EXPECT_EQ(shared_->checks, 1);
}

TEST_F(GpuProcessTest, ADeviceThatFailsTheCheckIsNotReady) {
  shared_->failing_checks = 2;
  for (int i = 0; i < 2; ++i) {
    const auto ready = process_->EnsureReady();
    ASSERT_FALSE(ready);
    EXPECT_EQ(ready.error().code, FailureCode::kDeviceFault);
    EXPECT_EQ(Run(static_cast<DeviceFate>(1000)).error().code, FailureCode::kDeviceFault);
  }
  EXPECT_EQ(restarts_.size(), 2U);
  ExpectWellAgain();
  EXPECT_EQ(shared_->children, 3);
}

}  // namespace
}  // namespace loopfleet::worker
