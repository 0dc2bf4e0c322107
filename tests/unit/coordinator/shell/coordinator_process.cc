#include "tests/unit/coordinator/shell/coordinator_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "common/job/loop_schedule.h"
#include "common/job/outcome_json.h"
#include "common/looptree/tree/key.h"
#include "tests/support/paths.h"

namespace loopfleet::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr seconds kLimit{120};

Instant Now() { return SystemClock().Now(); }

struct Child {
  pid_t pid = -1;
  UniqueFd out;
};

// Starts the program with `stream` (1 or 2) as a pipe to this process.
Child Start(const std::vector<std::string>& arguments, int stream) {
  int ends[2];
  LF_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "pipe");
  std::vector<std::string> all = {LOOPFLEET_BIN_DIR "/loopfleet-coordinator"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : all) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  LF_CHECK(pid >= 0, "fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], stream);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  return {.pid = pid, .out = UniqueFd(ends[0])};
}

std::string ReadUntil(int fd, char end) {
  std::string text;
  char byte = 0;
  while (::read(fd, &byte, 1) == 1) {
    if (byte == end) return text;
    text += byte;
  }
  return text;
}

int WaitFor(pid_t pid) {
  int status = 0;
  LF_CHECK(::waitpid(pid, &status, 0) == pid, "waitpid {}", pid);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

wire::Dealer Connect(wire::Context& context, const std::string& endpoint) {
  auto dealer = wire::Dealer::Connect(context, endpoint);
  LF_CHECK(dealer, "{}", dealer.error().message);
  return *std::move(dealer);
}

}  // namespace

void Await(const char* what, const std::function<bool()>& condition) {
  const Instant end = Now() + kLimit;
  while (!condition()) {
    LF_CHECK(Now() < end, "not in time: {}", what);
    std::this_thread::sleep_for(milliseconds(1));
  }
}

PrivateDir::PrivateDir() {
  std::string name = (std::filesystem::temp_directory_path() / "lf-coordinator-XXXXXX").native();
  LF_CHECK(::mkdtemp(name.data()) != nullptr, "mkdtemp");
  path_ = name;
}

PrivateDir::~PrivateDir() { std::filesystem::remove_all(path_); }

CoordinatorProcess::CoordinatorProcess(const std::filesystem::path& dir,
                                       const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"--listen-workers",
                                        "ipc://" + (dir / "workers").native(),
                                        "--http",
                                        "127.0.0.1:0",
                                        "--db",
                                        (dir / "test.db").native(),
                                        "--log-level",
                                        "warning"};
  if (std::ranges::find(more, "--listen-clients") == more.end()) {
    arguments.insert(arguments.end(), {"--listen-clients", "ipc://" + (dir / "clients").native()});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Child child = Start(arguments, STDOUT_FILENO);
  pid = child.pid;
  const std::string line = ReadUntil(child.out.get(), '\n');
  const auto ready = nlohmann::json::parse(line, nullptr, false);
  LF_CHECK(ready.is_object() && ready.value("ready", false), "it said '{}'", line);
  const auto db = nlohmann::json::parse(Dump((dir / "test.db").native()));
  LF_CHECK(ready.at("pid") == pid && ready.at("db") == db, "{}", line);
  clients = ready.at("clients");
  workers = ready.at("workers");
  http = ready.at("http");
}

CoordinatorProcess::~CoordinatorProcess() {
  if (pid < 0) return;
  Signal(SIGKILL);
  Wait();
}

void CoordinatorProcess::Signal(int signal) const { ::kill(pid, signal); }

int CoordinatorProcess::Wait() { return WaitFor(std::exchange(pid, -1)); }

Ended RunCoordinator(const std::vector<std::string>& arguments) {
  const Child child = Start(arguments, STDERR_FILENO);
  Ended ended{.errors = ReadUntil(child.out.get(), '\0')};
  ended.status = WaitFor(child.pid);
  return ended;
}

std::string HttpGet(const std::string& address, const std::string& path) {
  const auto colon = address.rfind(':');
  sockaddr_in target{.sin_family = AF_INET};
  target.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &target.sin_addr);
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  LF_CHECK(::connect(socket.get(), reinterpret_cast<sockaddr*>(&target), sizeof target) == 0,
           "connect to {}", address);
  const std::string request = fmt::format("GET {} HTTP/1.0\r\nHost: test\r\n\r\n", path);
  LF_CHECK(
      ::write(socket.get(), request.data(), request.size()) == static_cast<ssize_t>(request.size()),
      "write");
  std::string answer;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(socket.get(), buffer.data(), buffer.size())) > 0;) {
    answer.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return answer;
}

StubClient::StubClient(wire::Context& context, const std::string& endpoint)
    : dealer_(Connect(context, endpoint)) {}

wire::CoordinatorMessage StubClient::Call(const wire::ClientMessage& message,
                                          const std::function<void()>& meanwhile) {
  const std::uint64_t number = ++last_number_;
  const std::string frame = wire::Encode(wire::ClientRequest{.number = number, .message = message});
  const std::string hello = Hello();
  std::optional<wire::CoordinatorMessage> answer;
  Instant next_try{};
  Await("an answer", [&] {
    if (Now() >= next_try) {
      dealer_.Send(hello);
      dealer_.Send(frame);
      next_try = Now() + seconds(1);
    }
    meanwhile();
    while (auto received = dealer_.Receive()) {
      auto reply = wire::DecodeCoordinatorReply(*received);
      LF_CHECK(reply, "{}", reply.error().message);
      if (reply->number == number) answer = std::move(reply->message);
    }
    return answer.has_value();
  });
  return *std::move(answer);
}

std::string StubClient::Hello() const {
  return wire::Encode(wire::ClientRequest{
      .number = 0, .message = wire::ClientHello{.client = id_, .program = "stub"}});
}

void StubClient::Send(const wire::ClientMessage& message) {
  if (last_number_ == 0) dealer_.Send(Hello());
  const auto sent =
      dealer_.Send(wire::Encode(wire::ClientRequest{.number = ++last_number_, .message = message}));
  LF_CHECK(sent == wire::SendResult::kSent, "the socket's queue is full");
}

wire::CoordinatorReply StubClient::Raw(std::string_view frame) {
  std::optional<wire::CoordinatorReply> answer;
  bool sent = false;
  Await("an answer to raw bytes", [&] {
    sent = sent || dealer_.Send(frame) == wire::SendResult::kSent;
    if (auto received = dealer_.Receive()) answer = wire::DecodeCoordinatorReply(*received).value();
    return answer.has_value();
  });
  return *std::move(answer);
}

StubWorker::StubWorker(wire::Context& context, const std::string& endpoint, std::uint32_t credit,
                       const std::string& host)
    : facts_{.worker = Uuid::Random(),
             .name = "stub" + host,
             .credit = credit,
             .hardware = {.hardware_class = "stub-class", .host = host},
             .compiler = {.llvm = "0", .tier = "none", .revision = "0"},
             .policy = "stub-policy"},
      dealer_(Connect(context, endpoint)) {
  Greet();
}

void StubWorker::Send(const wire::WorkerMessage& message) { dealer_.Send(wire::Encode(message)); }

void StubWorker::Greet() {
  wire::WorkerHello hello = facts_;
  for (const auto& [id, lease] : held_) hello.held.push_back({id, lease.job});
  ++hellos_;
  Send(std::move(hello));
  reported_.clear();  // reports on their way may be lost: send them again
}

wire::Report StubWorker::ReportOf(const wire::Lease& lease) {
  if (!reported_.contains(lease.lease)) ++runs_[lease.job];
  const auto replayed = ReplayJob(lease.spec);
  LF_CHECK(replayed, "job {} cannot be replayed", lease.job);
  wire::Report report{.lease = lease.lease,
                      .job = lease.job,
                      .evaluation = {.verdict = Measurement{.elapsed_ns = 100,
                                                            .elapsed_low_ns = 99,
                                                            .elapsed_high_ns = 101,
                                                            .elapsed_min_ns = 99,
                                                            .elapsed_mean_ns = 100,
                                                            .spread = 0.01,
                                                            .iterations_per_sample = 1,
                                                            .samples_ns = {99, 100, 101},
                                                            .sample_flags = {0, 0, 0}},
                                     .subject = looptree::KeyOf(replayed->tree),
                                     .flop_count = looptree::FlopCount(replayed->tree.program()),
                                     .conditions = Conditions{.hardware = facts_.hardware,
                                                              .compiler = facts_.compiler,
                                                              .policy = facts_.policy,
                                                              .isolation = "none"}}};
  if (fails_with_) report.evaluation.verdict = Failure{.code = *fails_with_, .message = "a stub"};
  return report;
}

void StubWorker::Hear(const wire::WorkerCommand& command) {
  if (const auto* leases = std::get_if<wire::Leases>(&command)) {
    for (const wire::Lease& lease : leases->leases) held_[lease.lease] = lease;
  } else if (const auto* stored = std::get_if<wire::ReportsStored>(&command)) {
    for (const LeaseId lease : stored->leases) held_.erase(lease);
  } else if (const auto* revoke = std::get_if<wire::Revoke>(&command)) {
    for (const LeaseId lease : revoke->leases) held_.erase(lease);
  } else if (std::holds_alternative<wire::HelloWanted>(command)) {
    Greet();
  }
}

void StubWorker::Step(std::size_t reports) {
  while (auto frame = dealer_.Receive()) {
    const auto command = wire::DecodeWorkerCommand(*frame);
    LF_CHECK(command, "{}", command.error().message);
    Hear(*command);
  }
  wire::Reports message;
  for (const auto& [id, lease] : held_) {
    if (message.reports.size() == reports) break;
    if (reported_.contains(id)) continue;
    message.reports.push_back(ReportOf(lease));
    reported_[id] = true;
  }
  if (!message.reports.empty()) Send(std::move(message));
  if (Now() - last_heartbeat_ >= milliseconds(300)) {
    last_heartbeat_ = Now();
    wire::Heartbeat heartbeat;
    for (const auto& [id, lease] : held_) heartbeat.held.push_back(id);
    Send(std::move(heartbeat));
  }
}

}  // namespace loopfleet::coordinator
