#include "worker/serve/serve_command.h"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/job/job_spec.h"
#include "kernel/channel.h"
#include "monitoring/host/core_plan.h"
#include "worker/child_programs.h"
#include "worker/sandbox/confinement.h"
#include "worker/serve/kernel_server.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {
namespace {

constexpr int kExitBadUsage = 2;
constexpr int kExitFailed = 70;
// For the kernels that wait for further runs, and the one that is verified.
constexpr std::uint32_t kPlaces = 40;

// The socket that is this process's standard input, moved elsewhere: children may inherit nothing.
Result<Channel> TakeStandardInput() {
  struct stat about{};
  if (::fstat(STDIN_FILENO, &about) != 0 || !S_ISSOCK(about.st_mode)) {
    return Fail(ErrorKind::kInvalid,
                "standard input is no socket: this command is started by the process that it "
                "compiles for (loopfleet.tensor in Python)");
  }
  UniqueFd socket(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!socket) return Fail(ErrorKind::kSystem, "standard input cannot be duplicated");
  if (::freopen("/dev/null", "r", stdin) == nullptr) {
    return Fail(ErrorKind::kSystem, "/dev/null cannot be opened");
  }
  return Channel(std::move(socket));
}

Status Serve(const WorkerConfig& config, const std::string& memory, const Backend& backend) {
  LF_TRY(Channel client, TakeStandardInput());
  LF_TRY(const std::vector<int> processors, monitoring::AllowedProcessors());
  const monitoring::CorePlan cores = monitoring::PlanCores(processors, {});
  LF_TRY(const std::unique_ptr<CodeArena> code, CodeArena::Create({.places = kPlaces}));
  const ChildPrograms programs =
      ChildProgramsOf(config, backend, {}, cores, ProbeIsolation(), *code);
  LF_TRY(const std::unique_ptr<ForkServer> fork_server, ForkServer::Start(programs));
  PreparerChildren children(*fork_server, config, [](ChildRole, ExitReason::Cause) {});
  KnownCode known(memory);
  KernelServer server({.children = children, .code = *code, .known = known});
  for (;;) {
    const Result<Channel::Message> message = client.ReceiveWithFds(kMaxRequestBytes);
    if (!message) return {};  // the client is done
    const std::optional<AnyServeRequest> request = DecodeServeRequest(message->bytes);
    if (!request) return Fail(ErrorKind::kCorrupt, "a request cannot be read: other versions?");
    std::string reply;
    if (const auto* const run = std::get_if<IsolatedRunRequest>(&*request)) {
      reply = EncodeIsolatedRunReply(
          server.Answer(*run, message->fds.empty() ? -1 : message->fds[0].get()));
    } else {
      reply = EncodeServeReply(server.Answer(std::get<ServeRequest>(*request)));
    }
    if (!client.Send(reply, std::nullopt)) return {};
  }
}

}  // namespace

int ServeMain(int argc, const char* const* argv, const Backend& backend) {
  WorkerConfig config{.reference_limit = std::chrono::seconds(20)};
  std::string memory;
  CLI::App app("Compiles kernels for the process that starts it over a socket",
               "loopfleet-worker serve");
  app.add_option("--threads", config.max_threads, "Threads that a kernel may use at most")
      ->check(CLI::Range(std::uint32_t{1}, kMostThreads))
      ->default_val(1);
  app.add_option("--memory", memory, "File that remembers which code was verified")
      ->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "loopfleet-worker serve: {}\n", error.what());
    return kExitBadUsage;
  }
  log::Init("loopfleet-worker", log::Level::kError);
  const Status ended = Serve(config, memory, backend);
  if (ended) return 0;
  fmt::print(stderr, "loopfleet-worker serve: {}\n", ended.error().message);
  return ended.error().kind == ErrorKind::kInvalid ? kExitBadUsage : kExitFailed;
}

}  // namespace loopfleet::worker
