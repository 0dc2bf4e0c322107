#pragma once
// A fork server with the fake backend.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "tests/unit/worker/backend/fake_backend.h"
#include "worker/processes/compiler_child.h"
#include "worker/processes/compiler_process.h"
#include "worker/processes/executor_child.h"
#include "worker/processes/executor_process.h"
#include "worker/processes/reference_child.h"
#include "worker/sandbox/fork_server.h"
#include "worker/verification/code_arena.h"

namespace loopfleet::worker {

// Limit for children that answer, crash or run out of memory. They take milliseconds, but on a busy
// machine they must never be taken for a hang.
inline constexpr std::chrono::seconds kPatience{60};
// Limit for a child that hangs. Other requests of the same test have to be done within it, too.
inline constexpr std::chrono::milliseconds kHangLimit{5'000};

// Numbers of requests that fake kernels can guess: 1, 2, 3 ...
inline std::function<std::uint64_t()> GuessableNumbers() {
  return [last = std::uint64_t{0}]() mutable { return ++last; };
}

class ChildrenFixture : public testing::Test {
 protected:
  void SetUp() override {
    backend_ = FakeBackend();
    auto code = CodeArena::Create({.places = 8, .place_bytes = std::size_t{64} << 10});
    ASSERT_TRUE(code) << code.error().message;
    code_ = *std::move(code);
    auto compiler = std::make_shared<std::unique_ptr<Compiler>>();
    auto linker = std::make_shared<std::unique_ptr<CodeLinker>>();
    programs_.prepare = [this, compiler, linker] {
      LF_CHECK(code_->MakeExecutable().has_value(), "the code arena");
      *compiler = backend_.make_compiler();
      *linker = backend_.make_linker();
    };
    const Isolation isolation = isolation_;
    programs_.by_role[ChildRole::kCompiler].run = [compiler, linker, isolation](Channel& channel) {
      return RunCompilerChild(channel, **compiler, **linker,
                              {.time_limit_s = 600, .isolation = isolation});
    };
    programs_.by_role[ChildRole::kReference].run = [isolation](Channel& channel) {
      return RunReferenceChild(channel, isolation);
    };
    for (const ChildRole role :
         {ChildRole::kVerifier, ChildRole::kExecutor, ChildRole::kProfiler}) {
      programs_.by_role[role].run = [role, isolation](Channel& channel) {
        return RunExecutorChild(channel, {.role = role, .isolation = isolation, .cores = {}});
      };
    }
    for (auto& [role, program] : programs_.by_role) {
      program.limits.private_bytes = std::uint64_t{128} << 20;
    }
    auto fork_server = ForkServer::Start(programs_);
    ASSERT_TRUE(fork_server) << fork_server.error().message;
    fork_server_ = *std::move(fork_server);
  }

  RestartListener Listener() {
    return [this](ChildRole role, ExitReason::Cause cause) { restarts_.emplace_back(role, cause); };
  }

  const Isolation isolation_ = ProbeIsolation();
  Backend backend_;
  std::unique_ptr<CodeArena> code_;
  ChildPrograms programs_;
  std::unique_ptr<ForkServer> fork_server_;
  std::vector<std::pair<ChildRole, ExitReason::Cause>> restarts_;
};

#if defined(__SANITIZE_ADDRESS__)
#define SKIP_WITHOUT_MEMORY_LIMITS() \
  GTEST_SKIP() << "the address sanitizer needs more address space than any limit allows"
#else
#define SKIP_WITHOUT_MEMORY_LIMITS() static_cast<void>(0)
#endif

}  // namespace loopfleet::worker
