#include "worker/processes/compiler_process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/unit/worker/processes/children_fixture.h"

namespace loopfleet::worker {
namespace {

class CompilerProcessTest : public ChildrenFixture {
 protected:
  void SetUp() override {
    ChildrenFixture::SetUp();
    WithLimit(kPatience);
  }
  void WithLimit(std::chrono::milliseconds limit) {
    compiler_ = std::make_unique<CompilerProcess>(*fork_server_, limit, Listener());
  }

  Failure FailureOf(Fault fault) {
    const auto kernel = compiler_->Compile(AddOf(fault).start, code_->Take());
    return kernel ? Failure{} : kernel.error();
  }
  // Whatever happened before, the next tree compiles.
  void ExpectToWork() {
    const auto compiled = compiler_->Compile(AddOf(1024).start, code_->Take());
    ASSERT_TRUE(compiled) << compiled.error().message;
    EXPECT_EQ(compiled->kernel.object, "1024");
    EXPECT_EQ(compiled->kernel.buffers.size(), 3U);
    EXPECT_EQ(compiled->code, FakeCode(1024));
  }

  std::unique_ptr<CompilerProcess> compiler_;
};

TEST_F(CompilerProcessTest, ManyKernelsFromOneChild) {
  for (int i = 0; i < 200; ++i) ExpectToWork();
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(CompilerProcessTest, ACrashIsAnErrorThatNamesTheSignal) {
  const Failure failure = FailureOf(Fault::kCompilerCrash);
  EXPECT_EQ(failure.code, FailureCode::kCompileError);
  EXPECT_EQ(failure.signal, SIGSEGV);
  EXPECT_NE(failure.message.find("SIGSEGV"), std::string::npos);
  ExpectToWork();
  ASSERT_EQ(restarts_.size(), 1U);
  EXPECT_EQ(restarts_[0], std::pair(ChildRole::kCompiler, ExitReason::Cause::kSignal));
}

// A compiler keeps state from job to job: one job may damage it so that a later one crashes.
TEST_F(CompilerProcessTest, WhatEndsAChildThatCompiledBeforeIsCompiledOnceMoreInANewOne) {
  for (int i = 1; i <= 3; ++i) {
    ExpectToWork();
    const auto compiled = compiler_->Compile(AddOf(Fault::kCompilerWornOut).start, code_->Take());
    EXPECT_TRUE(compiled) << compiled.error().message;
    EXPECT_EQ(restarts_.size(), static_cast<std::size_t>(i));
  }
  // In a new child it is still a crash.
  EXPECT_EQ(FailureOf(Fault::kCompilerCrash).signal, SIGSEGV);
  EXPECT_EQ(restarts_.size(), 5U);
  EXPECT_EQ(FailureOf(Fault::kCompilerCrash).signal, SIGSEGV);
  EXPECT_EQ(restarts_.size(), 6U);
}

TEST_F(CompilerProcessTest, AHangIsNotTriedAgain) {
  WithLimit(kHangLimit);
  ExpectToWork();
  EXPECT_EQ(FailureOf(Fault::kCompilerHang).code, FailureCode::kCompileTimeout);
  EXPECT_EQ(restarts_.size(), 1U);
}

TEST_F(CompilerProcessTest, AHangIsATimeout) {
  WithLimit(kHangLimit);
  EXPECT_EQ(FailureOf(Fault::kCompilerHang).code, FailureCode::kCompileTimeout);
  ExpectToWork();
  ASSERT_EQ(restarts_.size(), 1U);
  EXPECT_EQ(restarts_[0].second, ExitReason::Cause::kTimeout);
}

TEST_F(CompilerProcessTest, AnEndThatIsToldLateIsBelieved) {
  ExpectToWork();  // starts its child
  ASSERT_EQ(::kill(fork_server_->pid(), SIGSTOP), 0);
  const std::jthread goes_on([this] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    ::kill(fork_server_->pid(), SIGCONT);
  });
  const Failure failure = FailureOf(Fault::kCompilerCrash);
  EXPECT_EQ(failure.code, FailureCode::kCompileError);
  EXPECT_EQ(failure.signal, SIGSEGV) << failure.message;
  ExpectToWork();
}

TEST_F(CompilerProcessTest, WantOfMemoryIsOom) {
  SKIP_WITHOUT_MEMORY_LIMITS();
  EXPECT_EQ(FailureOf(Fault::kCompilerBomb).code, FailureCode::kCompileOom);
  ExpectToWork();
}

TEST_F(CompilerProcessTest, AKernelWithOtherBuffersThanItsProgramIsRefused) {
  EXPECT_EQ(FailureOf(Fault::kCompilerJunk).code, FailureCode::kCompileError);
  ExpectToWork();
}

TEST_F(CompilerProcessTest, ARefusalIsPassedOnAndCostsNoChild) {
  const Failure failure = FailureOf(Fault::kRefused);
  EXPECT_EQ(failure.code, FailureCode::kUnsupported);
  EXPECT_EQ(failure.message, "not this one");
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(CompilerProcessTest, AKernelThatCannotBeLinkedCostsNoChild) {
  const Failure failure = FailureOf(Fault::kNotLinkable);
  EXPECT_EQ(failure.code, FailureCode::kCompileError);
  EXPECT_EQ(failure.message, "an unknown symbol");
  EXPECT_EQ(FailureOf(Fault::kLongCode).code, FailureCode::kCompileError);
  ExpectToWork();
  EXPECT_TRUE(restarts_.empty());
}

TEST_F(CompilerProcessTest, WithoutANurseryEveryCallFailsAndReturns) {
  ExpectToWork();
  ASSERT_EQ(::kill(fork_server_->pid(), SIGKILL), 0);
  while (fork_server_->IsAlive()) {  // its children get their signal first
  }
  for (int i = 0; i < 3; ++i) {
    const auto kernel = compiler_->Compile(AddOf(1024).start, code_->Take());
    ASSERT_FALSE(kernel);
    EXPECT_EQ(kernel.error().code, FailureCode::kDeviceFault);
  }
}

TEST(CheckBuffersTest, EveryDifferenceIsFound) {
  const looptree::Program program = AddOf(16).start.program();
  const BufferSpec in{.role = BufferSpec::Role::kInput, .element_count = 16};
  const BufferSpec out{.role = BufferSpec::Role::kOutput, .element_count = 16};
  const BufferSpec scratch{.role = BufferSpec::Role::kScratch, .element_count = 5};
  const auto check = [&](std::vector<BufferSpec> buffers) {
    return CheckBuffers(Kernel{.buffers = std::move(buffers)}, program).has_value();
  };
  EXPECT_FALSE(check({in, in, out}));
  EXPECT_FALSE(check({in, in, out, scratch, scratch}));
  EXPECT_TRUE(check({in, in}));
  EXPECT_TRUE(check({in, out, in}));
  EXPECT_TRUE(check({in, in, out, out}));
  EXPECT_TRUE(check({in, in, scratch}));
  BufferSpec huge = scratch;
  huge.element_count = UINT64_MAX;
  EXPECT_TRUE(check({in, in, out, huge}));
  EXPECT_TRUE(check({in, in, out, huge, scratch, scratch}));
}

}  // namespace
}  // namespace loopfleet::worker
