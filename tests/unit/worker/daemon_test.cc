// Runs the daemon as a process of its own, with LLVM; the test plays the coordinator. The worker is
// the test build whose compiler fails for programs with a dimension of certain sizes.

#include "worker/daemon.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "common/base/unique_fd.h"
#include "common/wire/codec/codec.h"
#include "common/wire/transport/poller.h"
#include "tests/support/paths.h"

namespace loopfleet::worker {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;

std::string StatOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  return line;
}

bool IsRunning(pid_t pid) {
  const std::string stat = StatOf(pid);
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.at(name_end + 2) != 'Z';
}

std::set<pid_t> ChildrenOf(pid_t parent) {
  std::set<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    const std::string stat = pid > 0 ? StatOf(pid) : "";
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos) continue;
    if (std::atoi(stat.c_str() + name_end + 4) == parent) children.insert(pid);
  }
  return children;
}

std::set<pid_t> DescendantsOf(pid_t parent) {
  std::set<pid_t> all;
  for (const pid_t child : ChildrenOf(parent)) {
    all.insert(child);
    all.merge(DescendantsOf(child));
  }
  return all;
}

class DaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    auto router = wire::Router::Bind(context_, "tcp://127.0.0.1:0", {});
    ASSERT_TRUE(router) << router.error().message;
    router_.emplace(*std::move(router));
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    stdout_ = UniqueFd(ends[0]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      const std::string program = LOOPFLEET_BIN_DIR "/loopfleet-worker-faulty";
      const std::string endpoint = router_->endpoint();
      ::execl(program.c_str(), program.c_str(), "--coordinator", endpoint.c_str(), "--run-limit-ms",
              "5000", "--compile-limit-ms", "10000", nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
  }
  void TearDown() override {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  nlohmann::json ReadyLine() {
    std::string line;
    char next = 0;
    pollfd item{stdout_.get(), POLLIN, 0};
    while (::poll(&item, 1, 60'000) > 0 && ::read(stdout_.get(), &next, 1) == 1 && next != '\n') {
      line += next;
    }
    return nlohmann::json::parse(line, nullptr, false);
  }

  // The worker's next message. Answers heartbeats and skips them, except one that lists
  // waited_for_.
  std::optional<wire::WorkerMessage> Next() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    wire::Poller poller;
    poller.Add(*router_);
    while (std::chrono::steady_clock::now() < deadline) {
      const std::optional<wire::Received> received = router_->Receive();
      if (!received) {
        poller.Wait(20ms);
        continue;
      }
      peer_ = received->peer;
      auto message = wire::DecodeWorkerMessage(received->frame);
      if (!message) {
        ADD_FAILURE() << message.error().message;
        return std::nullopt;
      }
      const auto* heartbeat = std::get_if<wire::Heartbeat>(&*message);
      if (heartbeat == nullptr) return *std::move(message);
      Send(wire::HeartbeatAnswer{});
      if (waited_for_ && std::ranges::count(heartbeat->held, *waited_for_) > 0) {
        return *std::move(message);
      }
    }
    ADD_FAILURE() << "the worker was not heard";
    return std::nullopt;
  }
  template <class T>
  T Expect() {
    while (auto message = Next()) {
      if (auto* wanted = std::get_if<T>(&*message)) return std::move(*wanted);
      // On a busy machine the worker may think the coordinator silent and say hello again.
      if (std::holds_alternative<wire::WorkerHello>(*message)) SendWelcome();
    }
    return {};
  }
  void Send(const wire::WorkerCommand& command) { router_->Send(peer_, wire::Encode(command)); }

  wire::WorkerHello Welcome() {
    wire::WorkerHello hello = Expect<wire::WorkerHello>();
    SendWelcome();
    return hello;
  }
  void SendWelcome() { Send(wire::WorkerWelcome{.epoch = 1, .heartbeat_ms = 1000}); }
  void Grant(std::uint64_t id, const std::string& uri, std::vector<looptree::Action> actions = {}) {
    wire::Lease lease{.lease = {id}, .job = {.batch = {1}, .index = 0}};
    lease.spec.source = looptree::BenchmarkUri{uri};
    lease.spec.actions = std::move(actions);
    Send(wire::Leases{.leases = {lease}});
    granted_[id] = std::move(lease);
  }
  void GrantMatrixProduct(std::uint64_t id, int rows) {
    Grant(id, "benchmark://mm-v0/mm" + std::to_string(rows) + "_8_8");
  }
  // The evaluations of `count` leases, by lease. Like the coordinator, leases a job again if the
  // host was too busy to time it.
  std::map<std::uint64_t, Evaluation> Collect(std::size_t count) {
    int turns_left = 40;
    std::map<std::uint64_t, Evaluation> evaluations;
    while (evaluations.size() < count) {
      wire::Reports reports = Expect<wire::Reports>();
      if (reports.reports.empty()) break;
      for (wire::Report& report : reports.reports) {
        Send(wire::ReportsStored{.leases = {report.lease}});
        if (!report.evaluation.ok() &&
            report.evaluation.failure().code == FailureCode::kUnstableTiming && turns_left-- > 0) {
          Send(wire::Leases{.leases = {granted_.at(report.lease.value)}});
          continue;
        }
        evaluations[report.lease.value] = std::move(report.evaluation);
      }
    }
    return evaluations;
  }
  // Waits until the worker holds this lease.
  void ExpectHeld(std::uint64_t lease) {
    waited_for_ = LeaseId{lease};
    Expect<wire::Heartbeat>();
    waited_for_.reset();
  }
  int WaitForExit() {
    int status = 0;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(1ms);
    }
    ADD_FAILURE() << "the worker does not end";
    return -1;
  }
  static void ExpectToEnd(const std::set<pid_t>& processes) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (const pid_t pid : processes) {
      while (IsRunning(pid) && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(1ms);
      }
      EXPECT_FALSE(IsRunning(pid)) << pid;
    }
  }

  wire::Context context_;
  std::optional<wire::Router> router_;
  wire::PeerId peer_;
  std::map<std::uint64_t, wire::Lease> granted_;
  std::optional<LeaseId> waited_for_;
  UniqueFd stdout_;
  pid_t pid_ = -1;
};

TEST_F(DaemonTest, MeasuresWhatItIsGiven) {
  const nlohmann::json ready = ReadyLine();
  ASSERT_TRUE(ready.is_object());
  EXPECT_EQ(ready["ready"], true);
  EXPECT_EQ(ready["pid"], pid_);
  const wire::WorkerHello hello = Welcome();
  EXPECT_EQ(ready["worker"], hello.name);
  EXPECT_EQ(ready["http"], hello.http);
  EXPECT_EQ(hello.policy, "agreed2to5x5to20x60us-v6");
  EXPECT_FALSE(hello.hardware.hardware_class.empty());

  Grant(1, "benchmark://mm-v0/mm64_64_64", {looptree::Down{}, looptree::SwapUp{}});
  Grant(2, "benchmark://loop_tool-cpu-v0/2048");
  Grant(3, "benchmark://mm-v0/mm33_17_19");
  const auto evaluations = Collect(3);
  ASSERT_EQ(evaluations.size(), 3U);
  for (const auto& [id, evaluation] : evaluations) {
    ASSERT_TRUE(evaluation.ok()) << id << ": " << evaluation.failure().message;
    EXPECT_GT(evaluation.measurement().elapsed_ns, 0);
    EXPECT_GE(evaluation.measurement().samples_ns.size(), 3U);
    const std::string& isolation = evaluation.conditions->isolation;  // what the host offers
    EXPECT_TRUE(isolation.starts_with("seccomp+rlimits") ||
                isolation.starts_with("process+rlimits"))
        << isolation;
  }
  EXPECT_EQ(evaluations.at(1).flop_count, 2U * 64 * 64 * 64);
}

// The slot is shared with kernels that are being timed.
TEST_F(DaemonTest, ProbesItsCoreBetweenKernels) {
  const wire::WorkerHello hello = Welcome();
  EXPECT_EQ(std::ranges::count(hello.capabilities, "kind=probe"), 1);
  EXPECT_EQ(std::ranges::count(hello.capabilities, "kind=profile"), 1);
  GrantMatrixProduct(1, 16);
  Grant(2, "probe://peaks-v0");
  GrantMatrixProduct(3, 24);
  Grant(4, "probe://peaks-v0", {looptree::Down{}});
  const auto evaluations = Collect(4);
  ASSERT_EQ(evaluations.size(), 4U);
  EXPECT_TRUE(evaluations.at(1).is_timed());
  EXPECT_TRUE(evaluations.at(3).is_timed());
  EXPECT_EQ(evaluations.at(4).failure().code, FailureCode::kInvalidAction);
  const Evaluation& probed = evaluations.at(2);
  ASSERT_TRUE(probed.ok()) << probed.failure().message;
  ASSERT_FALSE(probed.is_timed());
  const auto number = [&](const char* name) {
    const auto found = probed.observed().values.find(name);
    return found == probed.observed().values.end() ? 0.0 : std::get<double>(found->second);
  };
  EXPECT_GT(number("flop_per_second"), 1e8);
  EXPECT_GT(number("read_bytes_per_second"), 1e8);
  EXPECT_GT(number("triad_bytes_per_second"), 1e8);
  EXPECT_GT(number("memory_load_ns"), 0);
  EXPECT_GT(probed.stages[Stage::kMeasure], Nanos{0});
}

TEST_F(DaemonTest, EveryFaultHasItsCodeAndTheDaemonGoesOn) {
  Welcome();
  const std::map<int, FailureCode> faults = {
      {67, FailureCode::kWrongOutput},    {71, FailureCode::kRunCrash},
      {73, FailureCode::kRunTimeout},     {79, FailureCode::kCompileError},
      {83, FailureCode::kCompileTimeout}, {89, FailureCode::kRunCrash},
  };
  for (const auto& [rows, code] : faults) {
    GrantMatrixProduct(1, rows);
    GrantMatrixProduct(2, 16);
    const auto evaluations = Collect(2);
    ASSERT_EQ(evaluations.size(), 2U);
    ASSERT_FALSE(evaluations.at(1).ok()) << rows;
    const Failure& failure = evaluations.at(1).failure();
    EXPECT_EQ(InfoOf(failure.code).name, InfoOf(code).name) << failure.message;
    EXPECT_EQ(evaluations.at(1).stages[Stage::kMeasure], Nanos{0});
    EXPECT_TRUE(evaluations.at(2).ok()) << evaluations.at(2).failure().message;
  }
}

TEST_F(DaemonTest, ATerminationDrainsAndLeavesNothing) {
  Welcome();
  GrantMatrixProduct(1, 16);
  Collect(1);
  const std::set<pid_t> processes = DescendantsOf(pid_);
  EXPECT_GE(processes.size(), 3U);  // fork server, compiler, executor
  for (std::uint64_t id = 2; id <= 6; ++id) GrantMatrixProduct(id, 73);  // hang, one after another
  ExpectHeld(6);
  ASSERT_EQ(::kill(pid_, SIGTERM), 0);
  std::set<std::uint64_t> answered;
  for (;;) {
    const auto message = Next();
    ASSERT_TRUE(message);
    if (const auto* reports = std::get_if<wire::Reports>(&*message)) {
      for (const wire::Report& report : reports->reports) {
        answered.insert(report.lease.value);
        Send(wire::ReportsStored{.leases = {report.lease}});
      }
    } else if (std::holds_alternative<wire::WorkerHello>(*message)) {
      SendWelcome();
    } else if (const auto* goodbye = std::get_if<wire::Goodbye>(&*message)) {
      for (const LeaseId lease : goodbye->returned) answered.insert(lease.value);
      break;
    }
  }
  EXPECT_EQ(answered, (std::set<std::uint64_t>{2, 3, 4, 5, 6}));
  EXPECT_EQ(WaitForExit(), 0);
  ExpectToEnd(processes);
}

TEST_F(DaemonTest, ASecondTerminationEndsItAtOnce) {
  ASSERT_TRUE(ReadyLine().is_object());
  const std::set<pid_t> processes = DescendantsOf(pid_);
  Welcome();
  GrantMatrixProduct(1, 16);
  Collect(1);
  GrantMatrixProduct(2, 83);
  ExpectHeld(2);
  const pid_t daemon = pid_;
  // Signals until it ends: how many signals a busy machine needs does not matter.
  int exit_code = 0;
  std::thread terminator([&] {
    while (::kill(daemon, 0) == 0 && IsRunning(daemon)) {
      ::kill(daemon, SIGTERM);
      std::this_thread::sleep_for(20ms);
    }
  });
  exit_code = WaitForExit();
  terminator.join();
  EXPECT_EQ(exit_code, 128 + SIGTERM);  // the compilation alone would have taken seconds
  ExpectToEnd(processes);
}

TEST_F(DaemonTest, ADaemonThatIsKilledLeavesNothing) {
  ASSERT_TRUE(ReadyLine().is_object());
  Welcome();
  GrantMatrixProduct(1, 73);  // an executor that hangs
  ExpectHeld(1);
  const std::set<pid_t> processes = DescendantsOf(pid_);
  EXPECT_GE(processes.size(), 3U);
  ASSERT_EQ(::kill(pid_, SIGKILL), 0);
  ExpectToEnd(processes);
}

}  // namespace
}  // namespace loopfleet::worker
