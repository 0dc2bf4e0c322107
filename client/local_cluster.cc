#include "client/local_cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <span>
#include <thread>

#include "client/client.h"
#include "common/base/counted.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kLastLines = 20;
constexpr std::size_t kMaxReadyLineBytes = 64 << 10;
constexpr int kSliceMs = 50;  // how soon a stop is noticed
constexpr Nanos kRegistrationPause = std::chrono::milliseconds(10);

// Reads the first line written to `fd`. kUnavailable: closed before; kTimeout; kClosed: stopped;
// kCorrupt: the line is too long.
Result<std::string> ReadLine(int fd, Nanos limit, const std::atomic<bool>* stop) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::string line;
  while (line.size() < kMaxReadyLineBytes) {
    if (stop != nullptr && *stop) return Fail(ErrorKind::kClosed, "interrupted");
    if (std::chrono::steady_clock::now() >= end)
      return Fail(ErrorKind::kTimeout, "no line in time");
    pollfd item{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&item, 1, kSliceMs) <= 0) continue;
    char byte = 0;
    const ssize_t got = ::read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Fail(ErrorKind::kUnavailable, "its output was closed");
    if (byte == '\n') return line;
    line += byte;
  }
  return Fail(ErrorKind::kCorrupt, "its first line does not end");
}

Result<std::string> TextIn(const std::string& line, const char* key) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains(key) && json[key].is_string()) {
    return json[key].get<std::string>();
  }
  return Fail(ErrorKind::kCorrupt, fmt::format("its line '{}' has no \"{}\"", line, key));
}

}  // namespace

std::filesystem::path OwnDirectory() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

Result<LocalCluster> LocalCluster::Start(const LocalClusterOptions& options) {
  LF_TRY(ScratchDir scratch, ScratchDir::Create());
  LocalCluster cluster(options, std::move(scratch));
  LF_TRY_VOID(cluster.StartCoordinator());
  LF_TRY_VOID(cluster.StartWorkers());
  LF_TRY_VOID(cluster.AwaitWorkers());
  return cluster;
}

LocalCluster::~LocalCluster() { Stop(); }

Result<std::string> LocalCluster::StartDaemon(const std::string& name,
                                              std::vector<std::string> argv) {
  Daemon daemon{.name = name, .process = Subprocess(), .output = {}, .log = {}};
  UniqueFd log;
  if (options_.logs == LocalLogs::kFiles) {
    std::string file = name + ".log";
    std::ranges::replace(file, ' ', '-');
    daemon.log = scratch_.path() / file;
    log = UniqueFd(::open(daemon.log.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
    if (!log) {
      return Fail(ErrorKind::kSystem,
                  fmt::format("cannot write {}: {}", daemon.log.native(), std::strerror(errno)));
    }
  }
  LF_TRY(Pipe output, OpenPipe());
  UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  LF_TRY(daemon.process, Subprocess::Start({.argv = std::move(argv),
                                            // The client's settings are not meant for the daemons.
                                            .clear_environment_prefixes = {"LOOPFLEET_"},
                                            .group = Subprocess::Group::kOwn,
                                            .stdin_fd = nothing.get(),
                                            .stdout_fd = output.write.get(),
                                            .stderr_fd = log ? log.get() : -1}));
  output.write.Reset();
  daemon.output = std::move(output.read);
  auto line = ReadLine(daemon.output.get(), options_.start_limit, options_.stop);
  if (!line) {
    const auto status = daemon.process.WaitFor(std::chrono::milliseconds(200));
    const std::string how = status ? ToString(*status) : "was not ready in time";
    return Fail(line.error().kind, fmt::format("the {} {}{}", name, how, LastLines(daemon)));
  }
  daemons_.push_back(std::move(daemon));
  return *std::move(line);
}

Status LocalCluster::StartCoordinator() {
  const auto& dir = scratch_.path();
  database_ =
      options_.database ? std::filesystem::absolute(*options_.database) : dir / "results.db";
  std::vector<std::string> argv = {(options_.programs / "loopfleet-coordinator").native(),
                                   "--listen-clients",
                                   "ipc://" + (dir / "clients").native(),
                                   "--listen-workers",
                                   "ipc://" + (dir / "workers").native(),
                                   "--http",
                                   "127.0.0.1:0",
                                   "--db",
                                   database_.native()};
  argv.insert(argv.end(), options_.coordinator_arguments.begin(),
              options_.coordinator_arguments.end());
  LF_TRY(const std::string line, StartDaemon("coordinator", std::move(argv)));
  LF_TRY(address_, TextIn(line, "clients"));
  LF_TRY(worker_address_, TextIn(line, "workers"));
  LF_TRY(http_, TextIn(line, "http"));
  return {};
}

Status LocalCluster::StartWorkers() {
  for (int i = 1; i <= options_.workers; ++i) {
    std::vector<std::string> argv = {(options_.programs / options_.worker_program).native(),
                                     "--coordinator", worker_address_, "--http", "127.0.0.1:0"};
    argv.insert(argv.end(), options_.worker_arguments.begin(), options_.worker_arguments.end());
    LF_TRY([[maybe_unused]] const std::string line,
           StartDaemon(fmt::format("worker {}", i), std::move(argv)));
  }
  return {};
}

Status LocalCluster::AwaitWorkers() {
  auto client = Client::Connect({.address = address_,
                                 .program = "loopfleet local",
                                 .connect_limit = options_.start_limit,
                                 .stop = options_.stop});
  if (!client) return Fail(client.error().kind, client.error().message);
  const auto end = std::chrono::steady_clock::now() + options_.start_limit;
  while (true) {
    const auto list = client->ListWorkers();
    if (!list) return Fail(list.error().kind, list.error().message);
    const auto ready =
        std::ranges::count(list->workers, wire::WorkerState::kReady, &wire::WorkerInfo::state);
    if (ready >= options_.workers) return {};
    for (const Death& death : TakeExits()) {
      return Fail(ErrorKind::kUnavailable,
                  fmt::format("{} {}{}", death.daemon, ToString(death.status), death.last_lines));
    }
    if (std::chrono::steady_clock::now() >= end) {
      return Fail(ErrorKind::kTimeout, fmt::format("{} of {} registered in {} s{}", ready,
                                                   Counted(options_.workers, "worker", "workers"),
                                                   options_.start_limit / std::chrono::seconds(1),
                                                   LastLines(daemons_.back())));
    }
    std::this_thread::sleep_for(kRegistrationPause);
  }
}

std::string LocalCluster::LastLines(const Daemon& daemon) const {
  if (daemon.log.empty()) return "";
  std::ifstream file(daemon.log);
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
    if (lines.size() > kLastLines) lines.pop_front();
  }
  if (lines.empty()) return "; it logged nothing";
  return fmt::format("; the last lines of its log:\n  {}", fmt::join(lines, "\n  "));
}

std::vector<std::pair<std::string, std::string>> LocalCluster::Environment() const {
  const char* path = std::getenv("PATH");
  std::vector<std::pair<std::string, std::string>> variables = {
      // So that `loopfleet` in the command runs this version.
      {"PATH", fmt::format("{}:{}", options_.programs.native(), path == nullptr ? "" : path)},
      {"LOOPFLEET_ADDRESS", address_},
      {"LOOPFLEET_WORKER_ADDRESS", worker_address_},
      {"LOOPFLEET_HTTP", http_},
      {"LOOPFLEET_DB", database_.native()}};
  // This cluster has no keys, but the user's settings may name those of another one.
  for (const char* name : {"LOOPFLEET_KEYS", "LOOPFLEET_CONFIG"}) {
    if (std::getenv(name) != nullptr) variables.emplace_back(name, "");
  }
  return variables;
}

std::vector<LocalCluster::Death> LocalCluster::TakeExits() {
  std::vector<Death> deaths;
  for (Daemon& daemon : daemons_) {
    if (daemon.death_told) continue;
    const auto status = daemon.process.Poll();
    if (!status) continue;
    daemon.death_told = true;
    deaths.push_back({.daemon = fmt::format("{} (pid {})", daemon.name, daemon.process.pid()),
                      .status = *status,
                      .last_lines = LastLines(daemon),
                      .is_coordinator = &daemon == &daemons_.front()});
  }
  return deaths;
}

void LocalCluster::Stop() {
  if (daemons_.empty()) return;
  const std::span<Daemon> workers = std::span(daemons_).subspan(1);
  for (Daemon& worker : workers) worker.process.Signal(SIGTERM);
  for (Daemon& worker : workers) {
    if (!worker.process.WaitFor(options_.stop_limit)) worker.process.End(Nanos{0});
  }
  daemons_.front().process.End(options_.stop_limit);
  daemons_.clear();
}

}  // namespace loopfleet::client
