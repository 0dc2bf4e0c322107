#include "worker/sandbox/syscall_filter.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

// glibc 2.36 declares these without C linkage.
extern "C" {
#include <sys/pidfd.h>
}

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "worker/processes/child_message.h"
#include "worker/sandbox/fork_server.h"

namespace loopfleet::worker {
namespace {

Instant Soon() { return Instant(std::chrono::steady_clock::now()) + std::chrono::seconds(120); }

int DoAsTold(Channel& channel, ChildRole role) {
  if (!SealProcess(role, Isolation::kSeccomp, channel.fd())) return kExitNotConfined;
  Result<std::string> word = channel.Receive(std::nullopt, 1000);
  if (!word) return 0;
  if (*word == "fork for good") {
    const pid_t pid = ::fork();
    while (pid == 0) ::poll(nullptr, 0, -1);
    static_cast<void>(channel.Send(std::to_string(pid), std::nullopt));
    static_cast<void>(channel.Receive(std::nullopt, 1000));
    return 0;
  }
  if (word->starts_with("fork and ")) {
    word->erase(0, 9);
    const pid_t pid = ::fork();
    if (pid != 0) {
      int status = 0;
      const bool ended = pid > 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status);
      const std::string answer = ended ? std::to_string(WEXITSTATUS(status)) : "no exit code";
      static_cast<void>(channel.Send(answer, std::nullopt));
      return 0;
    }
  }
  if (*word == "socket") ::syscall(SYS_socket, 1, 1, 0);
  if (*word == "outlive its parent") ::prctl(PR_SET_PDEATHSIG, 0);
  if (*word == "leave its group") ::setpgid(0, 0);
  if (*word == "leave its session") ::setsid();
  if (*word == "abort") std::abort();
  if (*word == "end as if for want of memory") std::raise(SIGKILL);
  if (*word == "end as if for want of time") std::raise(SIGXCPU);
  if (*word == "crash") std::raise(SIGSEGV);
  if (*word == "map to execute") {
    ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (word->starts_with("set a timer")) {
    const itimerval none{};
    ::setitimer(word->ends_with("of work") ? ITIMER_PROF : ITIMER_REAL, &none, nullptr);
  }
  if (*word == "lack memory") {
    while (::mmap(nullptr, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED) {
    }
    std::raise(SIGSEGV);
  }
  static_cast<void>(channel.Send("went on", std::nullopt));
  return 0;
}

class IsolationTest : public testing::Test {
 protected:
  void SetUp() override {
    if (ProbeIsolation() != Isolation::kSeccomp) GTEST_SKIP() << "this host filters no calls";
    for (const ChildRole role : {ChildRole::kCompiler, ChildRole::kVerifier, ChildRole::kExecutor,
                                 ChildRole::kPasses, ChildRole::kProfiler}) {
      programs_.by_role[role] = {
          .run = [role](Channel& channel) { return DoAsTold(channel, role); },
          .limits = {.private_bytes = std::uint64_t{256} << 20}};
    }
    fork_server_ = ForkServer::Start(programs_).value();
  }
  struct End {
    Result<std::string> answer;
    int status = 0;
  };
  End Tell(ChildRole role, std::string_view word) {
    ChildProcess child = fork_server_->Spawn(role).value();
    EXPECT_TRUE(child.channel().Send(word, Soon()));
    Result<std::string> answer = child.channel().Receive(Soon(), 1000);
    return {.answer = std::move(answer), .status = child.WaitUntilEnded(Soon()).value()};
  }

  // The number of a fork of the child that does not end by itself, nor with its parent.
  static pid_t ForkForGood(ChildProcess& child) {
    EXPECT_TRUE(child.channel().Send("fork for good", Soon()));
    return std::stoi(child.channel().Receive(Soon(), 1000).value());
  }
  static bool Ends(const UniqueFd& process) {
    pollfd item{process.get(), POLLIN, 0};
    return ::poll(&item, 1, 120'000) == 1;
  }

  ChildPrograms programs_;
  std::unique_ptr<ForkServer> fork_server_;
};

TEST_F(IsolationTest, AForbiddenCallIsReportedByName) {
  for (const ChildRole role : {ChildRole::kCompiler, ChildRole::kExecutor}) {
    const End end = Tell(role, "socket");
    ASSERT_TRUE(end.answer);
    const auto call = DecodeForbiddenCall(*end.answer);
    ASSERT_TRUE(call);
    EXPECT_EQ(SystemCallName(call->system_call), "socket");
    EXPECT_EQ(WEXITSTATUS(end.status), kExitForbiddenCall);
  }
}

TEST_F(IsolationTest, NobodyEndsItselfAsTheSystemWould) {
  for (const char* word : {"end as if for want of memory", "end as if for want of time"}) {
    const End end = Tell(ChildRole::kExecutor, word);
    ASSERT_TRUE(end.answer) << word;
    const auto call = DecodeForbiddenCall(*end.answer);
    ASSERT_TRUE(call) << word;
    EXPECT_EQ(SystemCallName(call->system_call), "tgkill");
    EXPECT_EQ(WEXITSTATUS(end.status), kExitForbiddenCall);
  }
}

TEST_F(IsolationTest, NoMemoryToExecute) {
  const End end = Tell(ChildRole::kExecutor, "map to execute");
  ASSERT_TRUE(end.answer);
  const auto call = DecodeForbiddenCall(*end.answer);
  ASSERT_TRUE(call);
  EXPECT_EQ(SystemCallName(call->system_call), "mmap");
}

TEST_F(IsolationTest, CrashesKeepTheirSignalsAndThoseOfKernelsAreReported) {
  const End crash = Tell(ChildRole::kExecutor, "crash");
  EXPECT_EQ(WTERMSIG(crash.status), SIGSEGV);
  ASSERT_TRUE(crash.answer);
  const auto reply = DecodeExecutorReply(*crash.answer);
  ASSERT_TRUE(reply);
  ASSERT_TRUE(std::holds_alternative<Crashed>(*reply));
  EXPECT_EQ(std::get<Crashed>(*reply).signal, SIGSEGV);
  EXPECT_EQ(WTERMSIG(Tell(ChildRole::kCompiler, "abort").status), SIGABRT);
}

TEST_F(IsolationTest, OnlyAProfilerSetsATimerAndOnlyThatOfTheClock) {
  EXPECT_EQ(Tell(ChildRole::kProfiler, "set a timer").answer.value(), "went on");
  for (const auto& [role, word] : {std::pair{ChildRole::kProfiler, "set a timer of work"},
                                   std::pair{ChildRole::kExecutor, "set a timer"},
                                   std::pair{ChildRole::kVerifier, "set a timer"},
                                   std::pair{ChildRole::kCompiler, "set a timer"}}) {
    const End end = Tell(role, word);
    ASSERT_TRUE(end.answer) << word;
    const auto call = DecodeForbiddenCall(*end.answer);
    ASSERT_TRUE(call) << word;
    EXPECT_EQ(SystemCallName(call->system_call), "setitimer");
  }
}

TEST_F(IsolationTest, ACrashForWantOfMemoryIsThat) {
  EXPECT_EQ(WEXITSTATUS(Tell(ChildRole::kCompiler, "lack memory").status), kExitOutOfMemory);
}

TEST_F(IsolationTest, WhatIsNeededGoesOn) {
  EXPECT_EQ(Tell(ChildRole::kExecutor, "nothing bad").answer.value(), "went on");
}

TEST(SystemCallNameTest, KnowsTheCallsOfThisHost) {
  EXPECT_EQ(SystemCallName(SYS_ptrace), "ptrace");
  EXPECT_EQ(SystemCallName(1'000'000), "number 1000000");
}

// The filter names the process that may signal itself, and a fork is another one.
TEST_F(IsolationTest, ARoleThatMayForkLearnsHowItsForksEnded) {
  EXPECT_EQ(Tell(ChildRole::kPasses, "fork and abort").answer.value_or(""),
            std::to_string(kExitAborted));
  EXPECT_EQ(Tell(ChildRole::kPasses, "fork and socket").answer.value_or(""),
            std::to_string(kExitForbiddenCall));
  for (const char* word : {"outlive its parent", "leave its group", "leave its session"}) {
    EXPECT_EQ(Tell(ChildRole::kPasses, std::string("fork and ") + word).answer.value_or(""),
              std::to_string(kExitForbiddenCall))
        << word;
  }
  const End end = Tell(ChildRole::kExecutor, "fork and abort");
  ASSERT_TRUE(end.answer);
  EXPECT_TRUE(DecodeForbiddenCall(*end.answer));
}

TEST_F(IsolationTest, ForksOfAPassesChildEndWithIt) {
  for (const char* way : {"it is killed", "it exits", "the fork server ends"}) {
    ChildProcess child = fork_server_->Spawn(ChildRole::kPasses).value();
    const UniqueFd fork(::pidfd_open(ForkForGood(child), 0));
    ASSERT_TRUE(fork) << way;
    if (way == std::string_view("it is killed")) child.Kill();
    if (way == std::string_view("it exits")) {
      ASSERT_TRUE(child.channel().Send("exit", Soon()));
    }
    if (way == std::string_view("the fork server ends")) fork_server_.reset();
    EXPECT_TRUE(Ends(fork)) << way;
  }
}

TEST_F(IsolationTest, ForksOfAPassesChildEndWithTheDaemon) {
  fork_server_.reset();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    const auto own = ForkServer::Start(programs_).value();
    ChildProcess child = own->Spawn(ChildRole::kPasses).value();
    const pid_t pid = ForkForGood(child);
    if (::write(write_end.get(), &pid, sizeof pid) < 0) std::_Exit(1);
    for (;;) ::pause();
  }
  pid_t pid = 0;
  ASSERT_EQ(::read(read_end.get(), &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  const UniqueFd fork(::pidfd_open(pid, 0));
  ASSERT_TRUE(fork);
  ::kill(daemon, SIGKILL);
  ASSERT_EQ(::waitpid(daemon, nullptr, 0), daemon);
  EXPECT_TRUE(Ends(fork));
}

}  // namespace
}  // namespace loopfleet::worker
