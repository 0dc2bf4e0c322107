#include "worker/sandbox/fork_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <thread>
#include <utility>
#include <vector>

#include "kernel/byte_codec.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {
namespace {

Instant Soon() { return Instant(std::chrono::steady_clock::now()) + std::chrono::seconds(120); }

// A child that obeys one-word commands.
int Obey(Channel& channel) {
  for (;;) {
    const Result<std::string> word = channel.Receive(std::nullopt, 1000);
    if (!word) return 0;
    std::string answer = *word;
    if (*word == "crash") std::raise(SIGSEGV);
    if (*word == "exit") std::_Exit(42);
    if (*word == "hang") ::pause();
    if (*word == "pid") answer = std::to_string(::getpid());
    if (*word == "fork") answer = ::fork() < 0 ? "refused" : "forked";
    if (*word == "uid") answer = std::to_string(::geteuid());
    if (*word == "home") answer = std::getenv("HOME") != nullptr ? "has an environment" : "none";
    if (*word == "seal") {
      const bool sealed =
          SealProcess(ChildRole::kExecutor, Isolation::kProcess, channel.fd()).has_value();
      answer = sealed ? "sealed" : "not sealed";
    }
    if (*word == "descriptors") {
      int count = 0;
      for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
      answer = std::to_string(count);
    }
    if (*word == "write") {
      const int fd =
          ::open("/tmp/loopfleet_fork_server_test", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
      std::signal(SIGXFSZ, SIG_IGN);
      answer = fd < 0 || ::write(fd, "x", 1) < 0 ? "refused" : "written";
      ::unlink("/tmp/loopfleet_fork_server_test");
    }
    if (!channel.Send(answer, std::nullopt)) return 0;
  }
}

class ForkServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto fork_server = ForkServer::Start(programs_);
    ASSERT_TRUE(fork_server) << fork_server.error().message;
    fork_server_ = *std::move(fork_server);
  }

  static std::string Ask(ChildProcess& child, std::string_view word) {
    if (!child.channel().Send(word, Soon())) return "cannot be asked";
    return child.channel().Receive(Soon(), 1000).value_or("no answer");
  }
  static void Tell(ChildProcess& child, std::string_view word) {
    ASSERT_TRUE(child.channel().Send(word, Soon()));
  }

  ChildPrograms programs_{
      .by_role = {{ChildRole::kCompiler, {.run = Obey}}, {ChildRole::kExecutor, {.run = Obey}}}};
  std::unique_ptr<ForkServer> fork_server_;
};

TEST_F(ForkServerTest, ChildrenAnswerOnTheirOwnChannels) {
  auto one = fork_server_->Spawn(ChildRole::kCompiler);
  auto two = fork_server_->Spawn(ChildRole::kExecutor);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(Ask(*one, "pid"), std::to_string(one->pid()));
  EXPECT_EQ(Ask(*two, "pid"), std::to_string(two->pid()));
  EXPECT_NE(one->pid(), two->pid());
  EXPECT_EQ(one->WaitUntilEnded(Instant{}).error().kind, ErrorKind::kTimeout);
}

TEST_F(ForkServerTest, TheWaitStatusArrives) {
  auto crashes = fork_server_->Spawn(ChildRole::kExecutor);
  auto exits = fork_server_->Spawn(ChildRole::kExecutor);
  auto is_killed = fork_server_->Spawn(ChildRole::kExecutor);
  ASSERT_TRUE(crashes && exits && is_killed);
  Tell(*crashes, "crash");
  Tell(*exits, "exit");
  Tell(*is_killed, "hang");
  is_killed->Kill();
  const int crash = crashes->WaitUntilEnded(Soon()).value();
  EXPECT_TRUE(WIFSIGNALED(crash));
  EXPECT_EQ(WTERMSIG(crash), SIGSEGV);
  const int exit = exits->WaitUntilEnded(Soon()).value();
  EXPECT_TRUE(WIFEXITED(exit));
  EXPECT_EQ(WEXITSTATUS(exit), 42);
  EXPECT_EQ(WTERMSIG(is_killed->WaitUntilEnded(Soon()).value()), SIGKILL);
  EXPECT_TRUE(fork_server_->IsAlive());
}

TEST_F(ForkServerTest, AHundredChildrenOneAfterAnother) {
  for (int i = 0; i < 100; ++i) {
    auto child = fork_server_->Spawn(ChildRole::kExecutor);
    ASSERT_TRUE(child) << child.error().message;
    Tell(*child, "exit");
    ASSERT_TRUE(child->WaitUntilEnded(Soon()));
  }
}

TEST_F(ForkServerTest, ASpareThatDiedIsNotHandedOut) {
  for (int i = 0; i < 20; ++i) {
    auto child = fork_server_->Spawn(ChildRole::kExecutor);
    ASSERT_TRUE(child) << child.error().message;
    EXPECT_EQ(Ask(*child, "pid"), std::to_string(child->pid()));
    // Waits for the spare beside it.
    const std::filesystem::path children =
        fmt::format("/proc/{0}/task/{0}/children", fork_server_->pid());
    const Instant deadline = Soon();
    std::vector<int> pids;
    while (pids.size() < 2) {
      ASSERT_LT(Instant(std::chrono::steady_clock::now()), deadline);
      pids.clear();
      std::ifstream stream(children);
      for (int pid = 0; stream >> pid;) pids.push_back(pid);
    }
    for (const int pid : pids) {
      if (pid == child->pid()) continue;
      ::kill(pid, SIGKILL);
      while (std::filesystem::exists(fmt::format("/proc/{}", pid))) {  // until it is reaped
        ASSERT_LT(Instant(std::chrono::steady_clock::now()), deadline);
      }
    }
    child->Kill();
    ASSERT_TRUE(child->WaitUntilEnded(Soon()));
  }
}

TEST_F(ForkServerTest, AChildWhoseHandleGoesIsKilled) {
  auto child = fork_server_->Spawn(ChildRole::kExecutor);
  ASSERT_TRUE(child);
  const std::filesystem::path process = "/proc/" + std::to_string(child->pid());
  ASSERT_TRUE(std::filesystem::exists(process));
  {
    const ChildProcess taken = *std::move(child);
  }
  const Instant deadline = Soon();
  while (std::filesystem::exists(process)) {
    ASSERT_LT(Instant(std::chrono::steady_clock::now()), deadline);
  }
}

TEST_F(ForkServerTest, ChildrenDieWithTheNursery) {
  auto child = fork_server_->Spawn(ChildRole::kExecutor);
  ASSERT_TRUE(child);
  Tell(*child, "hang");
  ASSERT_EQ(::kill(fork_server_->pid(), SIGKILL), 0);
  EXPECT_EQ(child->channel().Receive(Soon(), 100).error().kind, ErrorKind::kClosed);
  EXPECT_EQ(child->WaitUntilEnded(Soon()).error().kind, ErrorKind::kClosed);
  EXPECT_FALSE(fork_server_->IsAlive());
  EXPECT_FALSE(fork_server_->Spawn(ChildRole::kExecutor));
}

TEST_F(ForkServerTest, AnExecutorHasLittleLeft) {
  const int leaked =
      ::open("/etc/passwd", O_RDONLY);  // without close-on-exec, as from a careless library
  auto child = fork_server_->Spawn(ChildRole::kExecutor);
  ASSERT_TRUE(child);
  EXPECT_EQ(Ask(*child, "descriptors"), "4");  // standard streams and the channel
  EXPECT_EQ(Ask(*child, "home"), "none");
  EXPECT_EQ(Ask(*child, "write"), "refused");
  EXPECT_NE(Ask(*child, "uid"), "0");
  EXPECT_EQ(Ask(*child, "seal"), "sealed");
  EXPECT_EQ(Ask(*child, "fork"), "refused");
  ::close(leaked);
}

// The fork server is stopped for longer than the caller waits.
TEST(ForkServerStartTest, ALateAnswerIsNotTheNextRequests) {
  const auto saying = [](std::string_view role) {
    return [role](Channel& channel) {
      while (channel.Receive(std::nullopt, 1000)) {
        if (!channel.Send(role, std::nullopt)) break;
      }
      return 0;
    };
  };
  const ChildPrograms programs{.by_role = {{ChildRole::kCompiler, {.run = saying("compiler")}},
                                           {ChildRole::kExecutor, {.run = saying("executor")}}}};
  const auto fork_server = ForkServer::Start(programs).value();
  ASSERT_EQ(::kill(fork_server->pid(), SIGSTOP), 0);
  const auto late = fork_server->Spawn(ChildRole::kCompiler, std::chrono::milliseconds(20));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::kTimeout);
  // The next request is already sent when it goes on.
  std::jthread host([pid = fork_server->pid()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(pid, SIGCONT);
  });
  for (const auto& [role, word] : std::initializer_list<std::pair<ChildRole, std::string>>{
           {ChildRole::kExecutor, "executor"}, {ChildRole::kCompiler, "compiler"}}) {
    auto child = fork_server->Spawn(role, std::chrono::seconds(120));
    ASSERT_TRUE(child) << child.error().message;
    ASSERT_TRUE(child->channel().Send("who?", Soon()));
    EXPECT_EQ(child->channel().Receive(Soon(), 1000).value(), word);
  }
}

TEST(ForkServerStartTest, ARoleIsPreparedOnceBeforeItsFirstChild) {
  int times = 0;  // in the fork server
  const ChildPrograms programs{
      .by_role = {{ChildRole::kExecutor,
                   {.run =
                        [&times](Channel& channel) {
                          static_cast<void>(channel.Send(std::to_string(times), std::nullopt));
                          return 0;
                        },
                    .prepare = [&times] { ++times; }}}}};
  auto fork_server = ForkServer::Start(programs).value();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(fork_server->Spawn(ChildRole::kExecutor)->channel().Receive(Soon(), 100).value(),
              "1");
  }
}

TEST(ForkServerStartTest, APreparationThatCrashesIsAnError) {
  const ChildPrograms programs{.prepare = [] { std::raise(SIGKILL); },
                               .by_role = {{ChildRole::kExecutor, {.run = Obey}}}};
  const auto fork_server = ForkServer::Start(programs);
  ASSERT_FALSE(fork_server);
  EXPECT_NE(fork_server.error().message.find("did not become ready"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet::worker
