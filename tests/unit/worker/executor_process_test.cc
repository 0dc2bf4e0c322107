#include "worker/executor_process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include "tests/unit/worker/children_fixture.h"
#include "worker/workload.h"

namespace loopfleet::worker {
namespace {

class ExecutorProcessTest : public ChildrenFixture {
 protected:
  void SetUp() override {
    ChildrenFixture::SetUp();
    executor_ = std::make_unique<ExecutorProcess>(
        *nursery_, ExecutorProcess::Options{.run_limit = kHangLimit}, Listener());
  }

  static Kernel KernelOf(std::int64_t elements) {
    const auto count = static_cast<std::uint64_t>(elements);
    return {.object = std::to_string(elements),
            .buffers = {{.role = BufferSpec::Role::kInput, .element_count = count},
                        {.role = BufferSpec::Role::kInput, .element_count = count},
                        {.role = BufferSpec::Role::kOutput, .element_count = count}}};
  }
  std::shared_ptr<const Workload> WorkloadOf(std::int64_t elements) {
    return MakeWorkload(AddOf(elements).start.program(), 42).value();
  }
  std::expected<void, Failure> Load(std::int64_t elements) {
    return executor_->Load(KernelOf(elements), WorkloadOf(elements));
  }
  Failure LoadFailure(Fault fault) {
    const auto loaded = Load(static_cast<std::int64_t>(fault));
    return loaded ? Failure{} : loaded.error();
  }
  Failure CheckFailure(Fault fault) {
    const auto loaded = Load(static_cast<std::int64_t>(fault));
    EXPECT_TRUE(loaded) << loaded.error().message;
    const auto checked = executor_->CheckOutputs();
    return checked ? Failure{} : checked.error();
  }
  // Whatever happened before, the next kernel runs, is right and can be timed.
  void ExpectToWork(std::int64_t elements = 1024) {
    const auto loaded = Load(elements);
    ASSERT_TRUE(loaded) << loaded.error().message;
    auto checked = executor_->CheckOutputs();
    ASSERT_TRUE(checked) << checked.error().message;
    const auto samples = executor_->Time({.repetitions = 3, .min_repetition_ns = 1000});
    ASSERT_TRUE(samples) << samples.error().message;
    EXPECT_EQ(samples->ns.size(), 3U);
    ASSERT_TRUE(executor_->RunAgain());
    checked = executor_->CheckOutputs();
    ASSERT_TRUE(checked) << checked.error().message;
  }
  void ExpectOneRestart(ChildEnd::Cause cause) {
    ASSERT_EQ(restarts_.size(), 1U);
    EXPECT_EQ(restarts_[0], std::pair(ChildRole::kExecutor, cause));
  }

  std::unique_ptr<ExecutorProcess> executor_;
};

TEST_F(ExecutorProcessTest, ManyKernelsOfDifferentSizesInOneChild) {
  for (int round = 0; round < 3; ++round) {
    for (const std::int64_t elements : {1, 2, 1000, 1024, 300'000, 16}) {
      ExpectToWork(elements);
    }
  }
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(ExecutorProcessTest, OneWorkloadForManyKernels) {
  const auto workload = WorkloadOf(1024);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(executor_->Load(KernelOf(1024), workload));
    ASSERT_TRUE(executor_->CheckOutputs());
  }
}

TEST_F(ExecutorProcessTest, WrongOutputIsFound) {
  const Failure failure = CheckFailure(Fault::kWrongOutput);
  EXPECT_EQ(failure.code, FailureCode::kWrongOutput);
  EXPECT_NE(failure.message.find("element 33"), std::string::npos) << failure.message;
}

TEST_F(ExecutorProcessTest, AnElementLeftOutIsFound) {
  ExpectToWork(static_cast<std::int64_t>(Fault::kLastElementLeft) +
               1);  // leaves right values there
  const Failure failure = CheckFailure(Fault::kLastElementLeft);
  EXPECT_EQ(failure.code, FailureCode::kWrongOutput);
  EXPECT_NE(failure.message.find("never written"), std::string::npos) << failure.message;
}

TEST_F(ExecutorProcessTest, WritingBesideTheBuffersIsFound) {
  const Failure failure = CheckFailure(Fault::kBeside);
  EXPECT_EQ(failure.code, FailureCode::kWrongOutput);
  EXPECT_NE(failure.message.find("beside"), std::string::npos) << failure.message;
}

TEST_F(ExecutorProcessTest, AKernelThatIsRightOnlyOnceIsFoundAfterwards) {
  ASSERT_TRUE(Load(static_cast<std::int64_t>(Fault::kRightOnce)));
  EXPECT_TRUE(executor_->CheckOutputs());
  ASSERT_TRUE(executor_->RunAgain());
  const auto checked = executor_->CheckOutputs();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, FailureCode::kWrongOutput);
}

TEST_F(ExecutorProcessTest, ACrashNamesItsSignal) {
  const Failure failure = LoadFailure(Fault::kCrash);
  EXPECT_EQ(failure.code, FailureCode::kRunCrash);
  EXPECT_EQ(failure.signal, SIGSEGV);
  ExpectToWork();
  ExpectOneRestart(ChildEnd::Cause::kSignal);
}

TEST_F(ExecutorProcessTest, AnIllegalInstructionNamesItsSignal) {
  const Failure failure = LoadFailure(Fault::kIllegal);
  EXPECT_EQ(failure.code, FailureCode::kRunCrash);
  EXPECT_TRUE(failure.signal == SIGILL || failure.signal == SIGTRAP) << failure.signal;
  ExpectToWork();
}

TEST_F(ExecutorProcessTest, InputsCannotBeWritten) {
  const auto workload = WorkloadOf(static_cast<std::int64_t>(Fault::kWritesInput));
  const auto loaded =
      executor_->Load(KernelOf(static_cast<std::int64_t>(Fault::kWritesInput)), workload);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, FailureCode::kRunCrash);
  EXPECT_EQ(loaded.error().signal, SIGSEGV);
  ExpectToWork();
}

TEST_F(ExecutorProcessTest, AHangIsATimeout) {
  EXPECT_EQ(LoadFailure(Fault::kHang).code, FailureCode::kRunTimeout);
  ExpectToWork();
  ExpectOneRestart(ChildEnd::Cause::kTimeout);
}

TEST_F(ExecutorProcessTest, AnEndWithoutAnAnswerIsACrash) {
  const Failure failure = LoadFailure(Fault::kExit);
  EXPECT_EQ(failure.code, FailureCode::kRunCrash);
  EXPECT_EQ(failure.signal, 0);
  ExpectToWork();
  ExpectOneRestart(ChildEnd::Cause::kExit);
}

TEST_F(ExecutorProcessTest, JunkOnTheChannelIsACrash) {
  EXPECT_EQ(LoadFailure(Fault::kJunk).code, FailureCode::kRunCrash);
  ExpectToWork();
  ExpectOneRestart(ChildEnd::Cause::kJunk);
}

TEST_F(ExecutorProcessTest, TimesLongerThanWhatPassedAreJunk) {
  ASSERT_TRUE(Load(static_cast<std::int64_t>(Fault::kLies)));
  const auto samples = executor_->Time({});
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.error().code, FailureCode::kRunCrash);
  ExpectToWork();
  ExpectOneRestart(ChildEnd::Cause::kJunk);
}

TEST_F(ExecutorProcessTest, WantOfMemoryIsOom) {
  SKIP_WITHOUT_MEMORY_LIMITS();
  EXPECT_EQ(LoadFailure(Fault::kBomb).code, FailureCode::kRunOom);
  ExpectToWork();
  ExpectOneRestart(ChildEnd::Cause::kMemory);
}

TEST_F(ExecutorProcessTest, AKernelThatCannotBeLinkedCostsNoChild) {
  const Failure failure = LoadFailure(Fault::kNotLinkable);
  EXPECT_EQ(failure.code, FailureCode::kCompileError);
  EXPECT_NE(failure.message.find("an unknown symbol"), std::string::npos);
  ExpectToWork();
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(ExecutorProcessTest, TooMuchScratchIsRefusedBeforeItIsAllocated) {
  Kernel kernel = KernelOf(1024);
  kernel.buffers.push_back(
      {.role = BufferSpec::Role::kScratch, .element_count = std::uint64_t{1} << 39});
  const auto loaded = executor_->Load(kernel, WorkloadOf(1024));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, FailureCode::kLimitFootprint);
  ExpectToWork();
}

TEST(WorkloadTest, InputsAreSeededAndExpectedOutputsAreTheirSums) {
  const looptree::Program program = AddOf(1000).start.program();
  const auto one = MakeWorkload(program, 1).value();
  const auto again = MakeWorkload(program, 1).value();
  const auto other = MakeWorkload(program, 2).value();
  const auto bytes = [](const Workload& workload) {
    return std::span<const std::byte>(workload.inputs.bytes());
  };
  ASSERT_EQ(bytes(*one).size(), bytes(*again).size());
  EXPECT_EQ(std::memcmp(bytes(*one).data(), bytes(*again).data(), bytes(*one).size()), 0);
  EXPECT_NE(std::memcmp(bytes(*one).data(), bytes(*other).data(), bytes(*one).size()), 0);
  const auto input = [&](std::size_t i) {
    return reinterpret_cast<const float*>(bytes(*one).data() + one->layout.buffers[i].offset);
  };
  ASSERT_EQ(one->expected.size(), 1U);
  EXPECT_TRUE(one->expected[0].tolerance.empty());
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(one->expected[0].rounded[i], input(0)[i] + input(1)[i]);
    EXPECT_NE(input(0)[i], 0);
  }
}

TEST(WorkloadTest, TheCacheKeepsWhatFitsAndVariesTheInputs) {
  WorkloadCache cache({.max_bytes = 100'000, .seeds = 2});
  const looptree::Program program = AddOf(1000).start.program();
  const auto first = cache.Get(program).value();
  const auto second = cache.Get(program).value();
  EXPECT_NE(first->seed, second->seed);
  EXPECT_EQ(cache.Get(program).value(), first);
  EXPECT_EQ(cache.Get(program).value(), second);
  const looptree::Program big = AddOf(100'000).start.program();
  ASSERT_TRUE(cache.Get(big));  // drives everything else out
  ASSERT_TRUE(cache.Get(big));
  EXPECT_NE(cache.Get(program).value(), first);
}

}  // namespace
}  // namespace loopfleet::worker
