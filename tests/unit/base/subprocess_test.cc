#include "common/base/subprocess.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace loopfleet {
namespace {

using namespace std::chrono_literals;

std::string ReadAll(int fd) {
  std::string text;
  char buffer[256];
  for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, got);
  return text;
}

TEST(SubprocessTest, AMemoryFileIsReadAndWritten) {
  const auto in = MemoryFile("from its start");
  const auto out = MemoryFile("");
  ASSERT_TRUE(in.has_value() && out.has_value());
  auto process =
      Subprocess::Start({.argv = {"cat"}, .stdin_fd = in->get(), .stdout_fd = out->get()});
  ASSERT_TRUE(process.has_value()) << process.error().message;
  EXPECT_EQ(process->WaitFor(60s), ExitStatus{});
  EXPECT_EQ(::lseek(out->get(), 0, SEEK_SET), 0);
  EXPECT_EQ(ReadAll(out->get()), "from its start");
}

TEST(ShellQuotedTest, AShellReadsTheTextBack) {
  for (const std::string text : {"", "a $b", "it's", "'", "two\nlines"}) {
    const auto out = MemoryFile("");
    ASSERT_TRUE(out.has_value());
    auto shell = Subprocess::Start(
        {.argv = {"/bin/sh", "-c", "printf %s " + ShellQuoted(text)}, .stdout_fd = out->get()});
    ASSERT_TRUE(shell.has_value()) << shell.error().message;
    EXPECT_EQ(shell->WaitFor(60s), ExitStatus{});
    EXPECT_EQ(::lseek(out->get(), 0, SEEK_SET), 0);
    EXPECT_EQ(ReadAll(out->get()), text);
  }
}

TEST(SubprocessTest, GivesTheExitCode) {
  auto process = Subprocess::Start({.argv = {"/bin/sh", "-c", "exit 7"}});
  ASSERT_TRUE(process.has_value()) << process.error().message;
  EXPECT_EQ(process->WaitFor(60s), (ExitStatus{.code = 7}));
}

TEST(SubprocessTest, GivesTheSignalAsShellsDo) {
  auto process = Subprocess::Start({.argv = {"/bin/sh", "-c", "kill -9 $$"}});
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->WaitFor(60s), (ExitStatus{.code = 137, .signal = 9}));
}

TEST(SubprocessTest, SaysThatAProgramIsMissing) {
  const auto process = Subprocess::Start({.argv = {"/no/such/program"}});
  ASSERT_FALSE(process.has_value());
  EXPECT_EQ(process.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(process.error().message.find("/no/such/program"), std::string::npos);
}

TEST(SubprocessTest, ChangesTheEnvironment) {
  ::setenv("LOOPFLEET_UNIT_GONE", "1", 1);
  ::setenv("OTHER_UNIT_KEPT", "kept", 1);
  auto pipe = OpenPipe().value();
  auto process = Subprocess::Start(
      {.argv = {"/bin/sh", "-c", "echo [$LOOPFLEET_UNIT_GONE][$OTHER_UNIT_KEPT][$NEW]"},
       .set_environment = {{"NEW", "new"}},
       .clear_environment_prefixes = {"LOOPFLEET_"},
       .stdout_fd = pipe.write.get()});
  ASSERT_TRUE(process.has_value());
  pipe.write.Reset();
  EXPECT_EQ(ReadAll(pipe.read.get()), "[][kept][new]\n");
}

TEST(SubprocessTest, EndsGently) {
  auto pipe = OpenPipe().value();
  auto process = Subprocess::Start(
      {.argv = {"/bin/sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done"},
       .stdout_fd = pipe.write.get()});
  ASSERT_TRUE(process.has_value());
  char ready[6];
  ASSERT_EQ(::read(pipe.read.get(), ready, sizeof ready), 6);
  EXPECT_EQ(process->End(60s), (ExitStatus{.code = 3}));
}

TEST(SubprocessTest, KillsWhatDoesNotEnd) {
  auto pipe = OpenPipe().value();
  auto process = Subprocess::Start(
      {.argv = {"/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done"},
       .stdout_fd = pipe.write.get()});
  ASSERT_TRUE(process.has_value());
  char ready[6];
  ASSERT_EQ(::read(pipe.read.get(), ready, sizeof ready), 6);
  EXPECT_EQ(process->End(100ms), (ExitStatus{.code = 137, .signal = 9}));
}

TEST(SubprocessTest, DiesWithAParentThatIsKilled) {
  auto pipe = OpenPipe().value();
  const pid_t parent = ::fork();
  if (parent == 0) {
    auto child = Subprocess::Start({.argv = {"/bin/sleep", "1000"}});
    const pid_t pid = child ? child->pid() : -1;
    if (::write(pipe.write.get(), &pid, sizeof pid) != sizeof pid) ::_exit(1);
    while (true) ::pause();
  }
  pid_t child = -1;
  ASSERT_EQ(::read(pipe.read.get(), &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_GT(child, 0);
  ASSERT_EQ(::kill(child, 0), 0) << "it runs";
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  // This process cannot reap the grandchild, so /proc tells whether it is gone or a zombie.
  const std::string stat = "/proc/" + std::to_string(child) + "/stat";
  for (int i = 0; i < 6000; ++i) {
    FILE* file = ::fopen(stat.c_str(), "r");
    if (file == nullptr) return;
    char state = '?';
    const int fields = ::fscanf(file, "%*d %*s %c", &state);
    ::fclose(file);
    if (fields == 1 && (state == 'Z' || state == 'X')) return;
    std::this_thread::sleep_for(10ms);
  }
  FAIL() << "the child outlived its parent";
}

}  // namespace
}  // namespace loopfleet
