#include "kernel/tensor_backend.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "common/looptree/tree/program_builder.h"
#include "tensor/backend.h"

namespace loopfleet {
namespace {

constexpr std::int64_t kSize = 8;

looptree::LoopTree Doubling() {
  looptree::ProgramBuilder b;
  const looptree::DimId n = b.Dim("n", kSize);
  const looptree::NodeId x = b.Read({n});
  b.Write(b.Apply(looptree::Op::kAdd, {x, x}, {n}));
  return std::move(b).Build({}).value();
}

bool RunsRight(tensor::Runnable& kernel) {
  std::vector<float> input(kSize, 3);
  std::vector<float> output(kSize, 0);
  const float* const inputs[] = {input.data()};
  float* const outputs[] = {output.data()};
  kernel.Run(inputs, outputs);
  return output == std::vector<float>(kSize, 6);
}

// The only child of this process.
pid_t Child() {
  std::ifstream children("/proc/thread-self/children");
  pid_t pid = -1;
  children >> pid;
  return pid;
}

// A thread has made the memory of its run, and asks the service next.
bool IsRunning() {
  return std::ranges::any_of(
      std::filesystem::directory_iterator("/proc/self/fd"), [](const auto& fd) {
        std::error_code gone;
        return std::filesystem::read_symlink(fd, gone).string().contains("loopfleet-run");
      });
}

TEST(IsolatedTensorBackendTest, AChildForkedWhileAThreadRunsAKernelRunsItToo) {
  constexpr std::chrono::milliseconds kPause{20};
  constexpr unsigned kPatienceSeconds = 60;
  const auto kernel = IsolatedTensorBackend({.program = LOOPFLEET_WORKER})->Compile(Doubling());
  ASSERT_TRUE(RunsRight(*kernel));
  const pid_t service = Child();
  ASSERT_EQ(::kill(service, SIGSTOP),
            0);  // so the thread waits for it, whatever it holds meanwhile
  bool is_right = false;
  std::thread running([&] { is_right = RunsRight(*kernel); });
  while (!IsRunning()) std::this_thread::sleep_for(kPause);
  std::this_thread::sleep_for(kPause);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kPatienceSeconds);
    ::_exit(RunsRight(*kernel) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::kill(service, SIGCONT);
  running.join();
  EXPECT_TRUE(is_right);
}

}  // namespace
}  // namespace loopfleet
