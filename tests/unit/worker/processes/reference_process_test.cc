#include "worker/processes/reference_process.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/worker/processes/children_fixture.h"
#include "tests/unit/worker/verification/workload_here.h"

namespace loopfleet::worker {
namespace {

class ReferenceProcessTest : public ChildrenFixture {
 protected:
  ReferenceMaker MakerWithin(std::chrono::milliseconds limit) {
    process_ = std::make_unique<ReferenceProcess>(*fork_server_, limit, Listener());
    return [this](const auto& tree, InputSeed seed, const SharedMemory& inputs,
                  const SharedMemory& reference) {
      return process_->Compute(tree, seed, inputs, reference);
    };
  }
  std::unique_ptr<ReferenceProcess> process_;
};

looptree::LoopTree TreeOf(const std::string& uri) {
  return looptree::OpenBenchmark(looptree::BenchmarkUri{uri}).value().start;
}

TEST_F(ReferenceProcessTest, GivesWhatIsComputedHere) {
  const ReferenceMaker maker = MakerWithin(std::chrono::seconds(60));
  for (const char* uri : {"benchmark://loop_tool-cpu-v0/1000", "benchmark://mm-v0/mm17_300_31",
                          "benchmark://conv-v0/conv1_3_9_9__4_3_3_3"}) {
    const looptree::LoopTree tree = TreeOf(uri);
    const auto there = MakeWorkload(tree, {7}, maker).value();
    const auto here = MakeWorkload(tree, {7}, ComputeHere).value();
    for (const auto& memory : {&Workload::inputs, &Workload::reference}) {
      const auto bytes = ((*there).*memory).bytes();
      ASSERT_EQ(bytes.size(), ((*here).*memory).bytes().size());
      EXPECT_EQ(std::memcmp(bytes.data(), ((*here).*memory).bytes().data(), bytes.size()), 0)
          << uri;
    }
    ASSERT_EQ(there->expected.size(), here->expected.size());
    EXPECT_EQ(there->expected[0].tolerance.empty(), here->expected[0].tolerance.empty());
  }
  EXPECT_TRUE(restarts_.empty());
}

// The time depends on the host's load, so a timeout must not be the job's final outcome.
TEST_F(ReferenceProcessTest, WhatTakesTooLongMayBeTriedAgain) {
  const auto workload = MakeWorkload(TreeOf("benchmark://mm-v0/mm1024_1024_1024"), {1},
                                     MakerWithin(std::chrono::milliseconds(20)));
  ASSERT_FALSE(workload);
  EXPECT_TRUE(InfoOf(workload.error().code).policy.is_retryable)
      << InfoOf(workload.error().code).name;
  ASSERT_EQ(restarts_.size(), 1U);
  EXPECT_EQ(restarts_[0], std::pair(ChildRole::kReference, ExitReason::Cause::kTimeout));
  EXPECT_TRUE(MakeWorkload(AddOf(16).start, {1}, MakerWithin(std::chrono::seconds(60))));
}

TEST_F(ReferenceProcessTest, WantOfMemoryIsAFailureOfTheJob) {
  SKIP_WITHOUT_MEMORY_LIMITS();
  const auto workload = MakeWorkload(TreeOf("benchmark://mm-v0/mm8192_8192_1"), {1},
                                     MakerWithin(std::chrono::seconds(60)));
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().code, FailureCode::kRunOom);
}

}  // namespace
}  // namespace loopfleet::worker
