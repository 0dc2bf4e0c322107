#include "worker/processes/executor_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "common/base/unique_fd.h"
#include "tests/unit/worker/processes/children_fixture.h"
#include "tests/unit/worker/verification/workload_here.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {
namespace {

// Takes exactly three samples, even on the busiest host.
constexpr SamplingPolicy kShort{.min_samples = 3,
                                .most_samples = 3,
                                .min_repetition_ns = 1000,
                                .give_up_after = 1000,
                                .max_samples = 3};

class ExecutorProcessTest : public ChildrenFixture {
 protected:
  void SetUp() override {
    ChildrenFixture::SetUp();
    WithLimit(kPatience);
  }
  void WithLimit(std::chrono::milliseconds limit) {
    executor_ = std::make_unique<ExecutorProcess>(
        *fork_server_,
        ExecutorProcess::Options{.run_limit = limit, .new_number = GuessableNumbers()}, Listener());
  }
  void WithRequests(std::uint32_t most) {
    executor_ = std::make_unique<ExecutorProcess>(
        *fork_server_, ExecutorProcess::Options{.run_limit = kPatience, .max_requests = most},
        Listener());
  }

  std::shared_ptr<const Workload> WorkloadOf(std::int64_t elements) {
    return MakeWorkload(AddOf(elements).start, {42}, ComputeHere).value();
  }
  // The kernel in a place of its own, which it keeps until the next call.
  KernelCall CallOf(std::int64_t elements, std::shared_ptr<const Workload> workload = nullptr) {
    place_.reset();
    place_.emplace(code_->Take());
    if (!workload) workload = WorkloadOf(elements);
    const auto count = static_cast<std::uint64_t>(elements);
    const BufferLayout layout = LayOut({&count, 1}, workload->layout.buffers.size());
    KernelCall call{.entry = place_->Write(FakeCode(elements)).value(),
                    .workload = std::move(workload),
                    .arena = arenas_.Take(layout).value()};
    call.arena->Poison();
    return call;
  }
  Failure RunFailure(Fault fault) {
    const auto ran = executor_->Run(CallOf(static_cast<std::int64_t>(fault)));
    return ran ? Failure{} : ran.error();
  }
  Failure CheckFailure(Fault fault) {
    const KernelCall call = CallOf(static_cast<std::int64_t>(fault));
    const auto ran = executor_->Run(call);
    EXPECT_TRUE(ran) << ran.error().message;
    const auto checked = call.arena->Check(call.workload->expected);
    return checked ? Failure{} : checked.error();
  }
  std::expected<Timed, Failure> Time(const KernelCall& call,
                                     const SamplingPolicy& policy = kShort) {
    executor_->Begin(call, policy, std::chrono::milliseconds(1));
    return executor_->Finish();
  }
  static void ExpectRight(const KernelCall& call) {
    const auto checked = call.arena->Check(call.workload->expected);
    ASSERT_TRUE(checked) << checked.error().message;
  }
  // Whatever happened before, the next kernel runs, is right and can be timed.
  void ExpectToWork(std::int64_t elements = 1024) {
    const KernelCall call = CallOf(elements);
    const auto ran = executor_->Run(call);
    ASSERT_TRUE(ran) << ran.error().message;
    ExpectRight(call);
    call.arena->Poison();
    const auto timed = Time(call);
    ASSERT_TRUE(timed) << timed.error().message;
    EXPECT_EQ(timed->samples.ns.size(), 3U);
    EXPECT_GT(timed->outside.total_ns(), 0U);
    ExpectRight(call);
  }
  void ExpectOneRestart(ExitReason::Cause cause) {
    ASSERT_EQ(restarts_.size(), 1U);
    EXPECT_EQ(restarts_[0], std::pair(ChildRole::kExecutor, cause));
  }

  GuardedBufferPool arenas_{{.max_idle_bytes = std::size_t{16} << 20}};
  std::optional<CodeArena::Place> place_;
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

TEST_F(ExecutorProcessTest, FindsAboutHowLongARunTakes) {
  const KernelCall call = CallOf(1024);
  ASSERT_TRUE(executor_->Run(call));
  const std::optional<double> run_ns = executor_->FindRunNs(call);
  ASSERT_TRUE(run_ns);
  EXPECT_GT(*run_ns, 0);
  ExpectRight(call);
  EXPECT_FALSE(executor_->FindRunNs(CallOf(static_cast<std::int64_t>(Fault::kCrash))));
  ExpectToWork();
}

TEST_F(ExecutorProcessTest, OneWorkloadForManyKernels) {
  const auto workload = WorkloadOf(1024);
  for (int i = 0; i < 100; ++i) {
    const KernelCall call = CallOf(1024, workload);
    ASSERT_TRUE(executor_->Run(call));
    ExpectRight(call);
  }
}

TEST_F(ExecutorProcessTest, AnswersComeInTheOrderOfTheQuestions) {
  const auto workload = WorkloadOf(1024);
  std::deque<CodeArena::Place> places;
  std::deque<KernelCall> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(CallOf(1024, workload));
    places.push_back(*std::exchange(place_, std::nullopt));
    SamplingPolicy policy = kShort;
    policy.min_samples = policy.most_samples = policy.max_samples =
        static_cast<std::uint32_t>(i + 1);
    executor_->Begin(calls.back(), policy, std::chrono::milliseconds(1));
    if (calls.size() < 4) continue;
    const auto timed = executor_->Finish();
    ASSERT_TRUE(timed) << timed.error().message;
    EXPECT_EQ(timed->samples.ns.size(), static_cast<std::size_t>(i - 2));
    ExpectRight(calls.front());
    calls.pop_front();
    places.pop_front();
  }
  while (!calls.empty()) {
    ASSERT_TRUE(executor_->Finish());
    calls.pop_front();
  }
}

TEST_F(ExecutorProcessTest, WhatWasAskedAfterACrashIsAnsweredAllTheSame) {
  WithLimit(kHangLimit);
  for (const Fault fault : {Fault::kCrash, Fault::kHang, Fault::kExit, Fault::kJunk}) {
    const KernelCall bad = CallOf(static_cast<std::int64_t>(fault));
    const CodeArena::Place bad_place = *std::exchange(place_, std::nullopt);
    const KernelCall good = CallOf(1024);
    const CodeArena::Place good_place = *std::exchange(place_, std::nullopt);
    const KernelCall best = CallOf(2048);
    for (const KernelCall& call : {bad, good, best}) {
      executor_->Begin(call, kShort, std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(executor_->Finish());
    for (const KernelCall& call : {good, best}) {
      const auto timed = executor_->Finish();
      ASSERT_TRUE(timed) << timed.error().message;
      ExpectRight(call);
    }
  }
}

TEST_F(ExecutorProcessTest, WrongOutputIsFound) {
  const Failure failure = CheckFailure(Fault::kWrongOutput);
  EXPECT_EQ(failure.code, FailureCode::kWrongOutput);
  EXPECT_NE(failure.message.find("element 33"), std::string::npos) << failure.message;
}

TEST_F(ExecutorProcessTest, AnElementLeftOutIsFound) {
  ExpectToWork(static_cast<std::int64_t>(Fault::kLastElementLeft) +
               1);  // leaves correct values there
  const Failure failure = CheckFailure(Fault::kLastElementLeft);
  EXPECT_EQ(failure.code, FailureCode::kWrongOutput);
  EXPECT_NE(failure.message.find("never written"), std::string::npos) << failure.message;
}

TEST_F(ExecutorProcessTest, WritingBesideTheBuffersIsFound) {
  const Failure failure = CheckFailure(Fault::kBeside);
  EXPECT_EQ(failure.code, FailureCode::kWrongOutput);
  EXPECT_NE(failure.message.find("outside"), std::string::npos) << failure.message;
}

TEST_F(ExecutorProcessTest, WritingAPageBesideTheBuffersIsACrash) {
  const Failure failure = RunFailure(Fault::kPageBeside);
  EXPECT_EQ(failure.code, FailureCode::kRunCrash);
  EXPECT_EQ(failure.signal, SIGSEGV);
  ExpectToWork();
}

TEST_F(ExecutorProcessTest, AKernelThatIsRightOnlyOnceIsFoundAfterwards) {
  const KernelCall call = CallOf(static_cast<std::int64_t>(Fault::kRightOnce));
  ASSERT_TRUE(executor_->Run(call));
  ExpectRight(call);
  call.arena->Poison();
  ASSERT_TRUE(Time(call));
  const auto checked = call.arena->Check(call.workload->expected);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, FailureCode::kWrongOutput);
}

TEST_F(ExecutorProcessTest, ACrashNamesItsSignal) {
  const Failure failure = RunFailure(Fault::kCrash);
  EXPECT_EQ(failure.code, FailureCode::kRunCrash);
  EXPECT_EQ(failure.signal, SIGSEGV);
  ExpectToWork();
  ExpectOneRestart(ExitReason::Cause::kSignal);
}

TEST_F(ExecutorProcessTest, AnIllegalInstructionNamesItsSignal) {
  const Failure failure = RunFailure(Fault::kIllegal);
  EXPECT_EQ(failure.code, FailureCode::kRunCrash);
  EXPECT_TRUE(failure.signal == SIGILL || failure.signal == SIGTRAP) << failure.signal;
  ExpectToWork();
}

TEST_F(ExecutorProcessTest, InputsCannotBeWritten) {
  const Failure failure = RunFailure(Fault::kWritesInput);
  EXPECT_EQ(failure.code, FailureCode::kRunCrash);
  EXPECT_EQ(failure.signal, SIGSEGV);
  ExpectToWork();
}

TEST_F(ExecutorProcessTest, WhatLoopsAfterAForgedTimingIsNotTheNextOnesFault) {
  WithLimit(kHangLimit);
  const KernelCall bad = CallOf(static_cast<std::int64_t>(Fault::kForgesTimeThenLoops));
  const CodeArena::Place bad_place = *std::exchange(place_, std::nullopt);
  const KernelCall good = CallOf(1024);
  executor_->Begin(bad, kShort, std::chrono::milliseconds(1));
  executor_->Begin(good, kShort, std::chrono::milliseconds(1));
  EXPECT_TRUE(executor_->Finish());  // the forged reply is believed
  const auto timed = executor_->Finish();
  ASSERT_TRUE(timed) << timed.error().message;
  ExpectRight(good);
  ExpectOneRestart(ExitReason::Cause::kTimeout);
}

TEST_F(ExecutorProcessTest, AKernelCannotGuessTheNumberOfItsRequest) {
  executor_ = std::make_unique<ExecutorProcess>(
      *fork_server_, ExecutorProcess::Options{.run_limit = kPatience}, Listener());
  const auto timed = Time(CallOf(static_cast<std::int64_t>(Fault::kForgesTimeThenLoops)));
  ASSERT_FALSE(timed);
  EXPECT_EQ(timed.error().code, FailureCode::kRunCrash);
  ExpectToWork();
  ExpectOneRestart(ExitReason::Cause::kJunk);
}

// This kernel is right only on its first call in a child.
TEST_F(ExecutorProcessTest, AChildIsReplacedAfterItsShareOfRequests) {
  WithRequests(2);
  const KernelCall call = CallOf(static_cast<std::int64_t>(Fault::kRightOnce));
  for (int child = 0; child < 3; ++child) {
    call.arena->Poison();
    ASSERT_TRUE(executor_->Run(call));
    ExpectRight(call);
    call.arena->Poison();
    ASSERT_TRUE(executor_->Run(call));
    EXPECT_FALSE(call.arena->Check(call.workload->expected));
  }
  EXPECT_TRUE(restarts_.empty());  // nothing went wrong
}

TEST_F(ExecutorProcessTest, AChildIsReplacedThoughMoreKernelsWait) {
  constexpr std::size_t kShare = 3;
  WithRequests(kShare);
  std::deque<CodeArena::Place> places;
  std::deque<KernelCall> calls;
  const auto take = [&] {
    const auto timed = executor_->Finish();
    ASSERT_TRUE(timed) << timed.error().message;
    ExpectRight(calls.front());
    calls.pop_front();
    places.pop_front();
  };
  for (std::size_t i = 0; i < 5 * kShare; ++i) {
    calls.push_back(CallOf(i % kShare == 0 ? static_cast<std::int64_t>(Fault::kRightOnce) : 1024));
    places.push_back(*std::exchange(place_, std::nullopt));
    executor_->Begin(calls.back(), kShort, std::chrono::milliseconds(1));
    if (calls.size() == 5) take();
  }
  while (!calls.empty()) take();
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(ExecutorProcessTest, AKernelCannotReachTheBuffersOfAnEarlierOne) {
  const KernelCall first = CallOf(static_cast<std::int64_t>(Fault::kWritesElsewhere));
  const CodeArena::Place first_place = *std::exchange(place_, std::nullopt);
  const KernelCall second = CallOf(static_cast<std::int64_t>(Fault::kWritesElsewhere));
  ASSERT_TRUE(Time(first));
  ExpectRight(first);
  ASSERT_TRUE(Time(first));  // again, beside nothing else
  executor_->Begin(second, kShort, std::chrono::milliseconds(1));
  const auto timed = executor_->Finish();
  EXPECT_TRUE(timed) << "a new child, in which it is the first, gives its time";
  ExpectRight(first);
  ExpectOneRestart(ExitReason::Cause::kSignal);
}

TEST_F(ExecutorProcessTest, AHangIsATimeout) {
  WithLimit(kHangLimit);
  EXPECT_EQ(RunFailure(Fault::kHang).code, FailureCode::kRunTimeout);
  ExpectToWork();
  ExpectOneRestart(ExitReason::Cause::kTimeout);
}

TEST_F(ExecutorProcessTest, ARunIsStoppedAfterItsProcessorTime) {
  constexpr std::chrono::milliseconds kMost{30};
  const auto hung = executor_->Run(CallOf(static_cast<std::int64_t>(Fault::kHang)), kMost);
  ASSERT_TRUE(hung) << hung.error().message;
  EXPECT_TRUE(hung->was_stopped);
  EXPECT_GE(hung->passed, kMost);
  ExpectToWork();
  EXPECT_TRUE(restarts_.empty()) << "the child was not at fault";
  const KernelCall call = CallOf(1024);
  const auto ran = executor_->Run(call, kPatience);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_FALSE(ran->was_stopped);
  ExpectRight(call);
}

TEST_F(ExecutorProcessTest, ACrashBelowTheMostTimeIsACrash) {
  const auto ran = executor_->Run(CallOf(static_cast<std::int64_t>(Fault::kCrash)), kPatience);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, FailureCode::kRunCrash);
}

TEST_F(ExecutorProcessTest, AnEndWithoutAnAnswerIsACrash) {
  const Failure failure = RunFailure(Fault::kExit);
  EXPECT_EQ(failure.code, FailureCode::kRunCrash);
  EXPECT_EQ(failure.signal, 0);
  ExpectToWork();
  ExpectOneRestart(ExitReason::Cause::kExit);
}

TEST_F(ExecutorProcessTest, JunkOnTheChannelIsACrash) {
  EXPECT_EQ(RunFailure(Fault::kJunk).code, FailureCode::kRunCrash);
  ExpectToWork();
  ExpectOneRestart(ExitReason::Cause::kJunk);
}

TEST_F(ExecutorProcessTest, TimesLongerThanWhatPassedAreJunk) {
  const KernelCall call = CallOf(static_cast<std::int64_t>(Fault::kLies));
  ASSERT_TRUE(executor_->Run(call));
  const auto timed = Time(call);
  ASSERT_FALSE(timed);
  EXPECT_EQ(timed.error().code, FailureCode::kRunCrash);
  ExpectToWork();
  // An earlier kernel in the first child might have done it, so it was tried again in a second one.
  const std::pair junk(ChildRole::kExecutor, ExitReason::Cause::kJunk);
  EXPECT_EQ(restarts_, (decltype(restarts_){junk, junk}));
}

// True if no process maps it writable: only then can it be sealed against writing.
bool IsUnmapped(const UniqueFd& memory) {
  return ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE) == 0;
}

TEST_F(ExecutorProcessTest, AnIdleChildKeepsNoBigMemory) {
  constexpr std::int64_t kBig = 5'000'000;  // outputs of 20 MB
  for (const bool is_timed : {false, true}) {
    std::optional<KernelCall> call = CallOf(kBig);
    const UniqueFd memory(::fcntl(call->arena->memory().fd(), F_DUPFD_CLOEXEC, 0));
    if (is_timed) {
      const auto timed = Time(*call);
      ASSERT_TRUE(timed) << timed.error().message;
    } else {
      ASSERT_TRUE(executor_->Run(*call));
    }
    ExpectRight(*call);
    EXPECT_FALSE(IsUnmapped(memory));  // this process still maps it
    call.reset();
    if (is_timed) executor_->ReleaseBigMemory();
    ExpectToWork();  // runs after every earlier request
    EXPECT_TRUE(IsUnmapped(memory));
  }
}

TEST_F(ExecutorProcessTest, WhatItSaysOfItsOwnTimeIsNoMoreThanPassed) {
  const Instant start = std::chrono::steady_clock::now();
  const auto timed = Time(CallOf(static_cast<std::int64_t>(Fault::kBoasts)));
  ASSERT_TRUE(timed) << timed.error().message;
  const Nanos passed = std::chrono::steady_clock::now() - start;
  EXPECT_LE(timed->outside.total_ns(), static_cast<std::uint64_t>(passed.count()));
}

TEST_F(ExecutorProcessTest, WantOfMemoryIsOom) {
  SKIP_WITHOUT_MEMORY_LIMITS();
  EXPECT_EQ(RunFailure(Fault::kBomb).code, FailureCode::kRunOom);
  ExpectToWork();
  ExpectOneRestart(ExitReason::Cause::kMemory);
}

}  // namespace
}  // namespace loopfleet::worker
