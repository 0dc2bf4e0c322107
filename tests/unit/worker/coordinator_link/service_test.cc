#include "worker/coordinator_link/service.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <optional>
#include <string>

namespace loopfleet::worker {
namespace {

// What `tell` says as the first process of a PID namespace, as in a container. nullopt: this system
// makes none for this user.
std::optional<std::string> InAContainer(const std::function<std::string()>& tell) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return std::nullopt;
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) ::_exit(1);
    const pid_t first = ::fork();
    if (first == 0) {
      const std::string said = tell();
      ::_exit(::write(pipe[1], said.data(), said.size()) < 0 ? 1 : 0);
    }
    ::_exit(first < 0 || ::waitpid(first, nullptr, 0) < 0 ? 1 : 0);
  }
  ::close(pipe[1]);
  std::string said;
  std::array<char, 256> bytes{};
  for (ssize_t count = 0; (count = ::read(pipe[0], bytes.data(), bytes.size())) > 0;) {
    said.append(bytes.data(), static_cast<std::size_t>(count));
  }
  ::close(pipe[0]);
  ::waitpid(outer, nullptr, 0);
  return said.empty() ? std::nullopt : std::optional(said);
}

// Results are flagged, workers drained and affinities kept by name.
TEST(Service, WorkersInContainersOfOneHostHaveDifferentNames) {
  const auto name = [] {
    return MakeHello({}, {.hardware = {.host = "gpubox"}}, /*max_threads=*/1).name;
  };
  EXPECT_TRUE(name().starts_with(fmt::format("gpubox-{}", ::getpid()))) << name();
  const auto one = InAContainer(name);
  const auto other = InAContainer(name);
  if (!one || !other) GTEST_SKIP() << "no PID namespaces for this user";
  EXPECT_TRUE(one->starts_with("gpubox-1-")) << *one;
  EXPECT_NE(*one, *other);
}

}  // namespace
}  // namespace loopfleet::worker
