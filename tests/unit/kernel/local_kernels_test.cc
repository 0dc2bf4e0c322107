#include "kernel/local_kernels.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <thread>
#include <vector>

#include "common/looptree/tree/program_builder.h"
#include "common/looptree/tree/transform.h"

namespace loopfleet {
namespace {

using looptree::Op;

constexpr std::int64_t kSize = 37;

// exp(x) summed over one dim of two.
looptree::LoopTree ExpSum() {
  looptree::ProgramBuilder b;
  const looptree::DimId m = b.Dim("m", kSize), k = b.Dim("k", kSize);
  b.Write(b.Apply(Op::kAdd, {b.Apply(Op::kExp, {b.Read({m, k})}, {m, k})}, {m}));
  return std::move(b).Build({}).value();
}

std::vector<float> Input() {
  std::vector<float> input(kSize * kSize);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 11) / 11;
  return input;
}

void ExpectRight(LocalKernel& kernel) {
  const std::vector<float> input = Input();
  alignas(64) float output[kSize + 1] = {};
  const float* const inputs[] = {input.data()};
  float* const outputs[] = {output};
  kernel.Run(inputs, outputs);
  for (std::int64_t m = 0; m < kSize; ++m) {
    double sum = 0;
    for (std::int64_t k = 0; k < kSize; ++k) {
      sum += std::exp(static_cast<double>(input[static_cast<std::size_t>(m * kSize + k)]));
    }
    EXPECT_NEAR(output[m], sum, 1e-4 * sum) << m;
  }
  EXPECT_EQ(output[kSize], 0);
}

CompileService::Options Options() { return {.program = LOOPFLEET_WORKER}; }

TEST(LocalKernelsTest, CodeRunsHereAndIsVerifiedOnce) {
  const std::filesystem::path memory =
      testing::TempDir() + "/verified_" + std::to_string(::getpid());
  for (const Verified expected : {Verified::kRight, Verified::kBefore}) {
    CompileService::Options options = Options();
    options.memory = memory;
    LocalKernels kernels(options);
    const auto kernel = kernels.Compile(ExpSum(), VerifyWish::kOnce);
    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_EQ((*kernel)->verified(), expected);
    ExpectRight(**kernel);
  }
  std::filesystem::remove(memory);
}

TEST(LocalKernelsTest, AnEndedServiceIsStartedAgain) {
  LocalKernels kernels(Options());
  const auto first = kernels.Compile(ExpSum(), VerifyWish::kNever);
  ASSERT_TRUE(first) << first.error().message;
  const pid_t pid = kernels.service().pid();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  const auto second = kernels.Compile(ExpSum(), VerifyWish::kNever);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_NE(kernels.service().pid(), pid);
  ExpectRight(**first);
  ExpectRight(**second);
}

TEST(LocalKernelsTest, AForkedProcessStartsItsOwn) {
  LocalKernels kernels(Options());
  ASSERT_TRUE(kernels.Compile(ExpSum(), VerifyWish::kNever));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto kernel = kernels.Compile(ExpSum(), VerifyWish::kNever);
    if (kernel) ExpectRight(**kernel);
    ::_exit(kernel && !HasFailure() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(kernels.Compile(ExpSum(), VerifyWish::kNever));
}

// Each writes its code where the other one does not see it.
TEST(LocalKernelsTest, CodeOfAForkedProcessAndItsParentsDoNotMix) {
  LocalKernels kernels(Options());
  const auto first = kernels.Compile(ExpSum(), VerifyWish::kNever);
  ASSERT_TRUE(first);
  int compiled[2], go_on[2];
  ASSERT_EQ(::pipe(compiled), 0);
  ASSERT_EQ(::pipe(go_on), 0);
  char byte = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto own =
        kernels.Compile(looptree::SplitLoop(ExpSum(), 0, 8).value(), VerifyWish::kNever);
    bool is_fine =
        own.has_value() && ::write(compiled[1], &byte, 1) == 1 && ::read(go_on[0], &byte, 1) == 1;
    if (is_fine) {
      ExpectRight(**own);
      ExpectRight(**first);
    }
    ::_exit(is_fine && !HasFailure() ? 0 : 1);
  }
  ASSERT_EQ(::read(compiled[0], &byte, 1), 1);
  // At the place where the child's is, in an area that both had: another function.
  looptree::ProgramBuilder b;
  const looptree::DimId m = b.Dim("m", 5);
  b.Write(b.Apply(Op::kNegate, {b.Read({m})}, {m}));
  EXPECT_TRUE(kernels.Compile(std::move(b).Build({}).value(), VerifyWish::kNever));
  ASSERT_EQ(::write(go_on[1], &byte, 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ExpectRight(**first);
}

TEST(LocalKernelsTest, AForkedProcessHasThreadsOfItsOwn) {
  CompileService::Options options = Options();
  options.threads = 2;
  LocalKernels kernels(options);
  const auto kernel = kernels.Compile(
      looptree::Annotate(ExpSum(), 0, looptree::Annotation::kThread).value(), VerifyWish::kNever);
  ASSERT_TRUE(kernel);
  ExpectRight(**kernel);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ExpectRight(**kernel);
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ExpectRight(**kernel);
}

// A thread of the parent holds the lock at nearly every fork, and does not exist in the child.
TEST(LocalKernelsTest, AProcessForkedWhileAKernelRunsHasALockOfItsOwn) {
  CompileService::Options options = Options();
  options.threads = 2;
  LocalKernels kernels(options);
  const auto kernel = kernels.Compile(
      looptree::Annotate(ExpSum(), 0, looptree::Annotation::kThread).value(), VerifyWish::kNever);
  ASSERT_TRUE(kernel);
  ExpectRight(**kernel);
  const std::jthread runs([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) ExpectRight(**kernel);
  });
  for (int i = 0; i < 50 && !HasFailure(); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      ExpectRight(**kernel);
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "fork " << i;
  }
}

TEST(LocalKernelsTest, ParallelLoopsAndConcurrentCallers) {
  CompileService::Options options = Options();
  options.threads = 2;
  LocalKernels kernels(options);
  const auto tree = looptree::Annotate(ExpSum(), 0, looptree::Annotation::kThread).value();
  const auto kernel = kernels.Compile(tree, VerifyWish::kOnce);
  ASSERT_TRUE(kernel) << kernel.error().message;
  std::vector<std::jthread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      for (int run = 0; run < 20; ++run) ExpectRight(**kernel);
    });
  }
}

TEST(LocalKernelsTest, AMissingProgramIsNamed) {
  LocalKernels kernels({.program = "/nowhere/loopfleet-worker"});
  const auto kernel = kernels.Compile(ExpSum(), VerifyWish::kOnce);
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, FailureCode::kWorkerLost);
  EXPECT_NE(kernel.error().message.find("/nowhere/loopfleet-worker"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet
