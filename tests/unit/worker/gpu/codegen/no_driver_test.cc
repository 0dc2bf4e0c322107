// NoDriver keeps the driver out of processes that may not open files.

#include "worker/gpu/codegen/no_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <functional>
#include <memory>

#include "worker/gpu/codegen/ptx_assembler.h"
#include "worker/gpu/device/gpu_canary.h"
#include "worker/processes/child_message.h"
#include "worker/sandbox/confinement.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {
namespace {

constexpr GpuArch kArch{90};
constexpr int kNoDevice = 100;
constexpr int kNoChannel = 1000;
constexpr int kRight = 42;
constexpr int kWrong = 43;

// Calls cuInit as nvJitLink does, and returns its result.
int AskDriver(const char* library) {
  void* const driver = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return -1;
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  return init == nullptr ? -2 : init(0);
}

// For a death test's own process: seals it after `before`, and exits with kRight if `after` is
// true.
[[noreturn]] void Sealed(const std::function<void()>& before, const std::function<bool()>& after) {
  const rlimit limit{kNoDriverBytes, kNoDriverBytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  before();
  if (!ForbidWriting() || !SealProcess(ChildRole::kCompiler, Isolation::kSeccomp, kNoChannel)) {
    std::_Exit(kWrong);
  }
  std::_Exit(after() ? kRight : kWrong);
}

class NoDriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (ProbeIsolation() != Isolation::kSeccomp) {
      GTEST_SKIP() << "NOT TESTED: no filter of system calls here";
    }
    // Each death test needs a new process, because other tests have opened a driver in this one.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  static void Open() {
    if (!OpenNoDriver()) std::_Exit(kWrong);
  }
};

TEST_F(NoDriverTest, WhoAsksForADriverIsToldThatThereIsNoDevice) {
  EXPECT_EXIT(Sealed(Open,
                     [] {
                       return AskDriver("libcuda.so.1") == kNoDevice &&
                              AskDriver("libcuda.so.1") == kNoDevice;
                     }),
              ::testing::ExitedWithCode(kRight), "");
}

// Shows the need for NoDriver: a driver that starts opens devices, which is a violation.
TEST_F(NoDriverTest, ADriverThatStartsThereIsAViolation) {
  EXPECT_EXIT(Sealed([] { (void)::dlopen(LOOPFLEET_FAKE_CUDA_LIBRARY, RTLD_NOW); },
                     [] { return AskDriver(LOOPFLEET_FAKE_CUDA_LIBRARY) == 0; }),
              ::testing::ExitedWithCode(kExitForbiddenCall), "");
}

TEST_F(NoDriverTest, TheAssemblerLinksBehindIt) {
  auto assembler = OpenNvJitLink();
  if (!assembler) GTEST_SKIP() << "NOT TESTED: " << assembler.error().message;
  const GpuCanary canary = MakeGpuCanary(kArch).value();
  const auto assembles = [&] {
    return (*assembler)->Assemble(canary.kernel.ptx, kArch).has_value();
  };
  EXPECT_EXIT(Sealed(
                  [&] {
                    Open();
                    if (!assembles()) std::_Exit(kWrong);
                  },
                  [&] { return assembles() && assembles(); }),
              ::testing::ExitedWithCode(kRight), "");
}

TEST_F(NoDriverTest, IsTooLateWhereADriverIs) {
  EXPECT_EXIT(
      {
        if (::dlopen(LOOPFLEET_FAKE_CUDA_LIBRARY, RTLD_NOW) == nullptr) std::_Exit(kWrong);
        const Status opened = OpenNoDriver();
        std::_Exit(!opened && opened.error().kind == ErrorKind::kInvalid ? kRight : kWrong);
      },
      ::testing::ExitedWithCode(kRight), "");
}

}  // namespace
}  // namespace loopfleet::worker
