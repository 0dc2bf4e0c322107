// A coordinator that may take 512 MiB, in a control group of that size where one can be made, under
// clients that send all that their quotas allow: jobs with large tags, very many small jobs, and
// large frames before any hello. It stays below, refuses with the time to try again, and serves
// others meanwhile.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/client.h"
#include "client/local_cluster.h"
#include "client/request_id.h"
#include "common/wire/bounds.h"
#include "common/wire/codec/codec.h"
#include "common/wire/transport/poller.h"
#include "tests/support/paths.h"

namespace loopfleet::client {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMemory = std::uint64_t{512} << 20;
constexpr auto kLoadFor = 15s;  // below no_worker_grace, which would end the jobs
constexpr int kSubmitters = 4;  // of each kind
constexpr int kStrangers = 24;

// A control group with a limit of memory. None if this process may not make one.
class MemoryGroup {
 public:
  static std::optional<MemoryGroup> Make(std::uint64_t bytes) {
    const std::string name = fmt::format("loopfleet_test_{}", ::getpid());
    const std::pair<std::filesystem::path, const char*> hierarchies[] = {
        {"/sys/fs/cgroup", "memory.max"}, {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}};
    for (const auto& [root, file] : hierarchies) {
      std::error_code error;
      const std::filesystem::path group = root / name;
      if (!std::filesystem::create_directory(group, error) || error) continue;
      MemoryGroup made(group);  // the kernel puts its files there, unless `root` is no hierarchy
      if (std::filesystem::exists(group / file) && Write(group / file, fmt::format("{}", bytes))) {
        return made;
      }
    }
    return std::nullopt;
  }
  MemoryGroup(MemoryGroup&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~MemoryGroup() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove(path_, error);  // empty by now
  }

  bool Enter(pid_t process) const {
    return Write(path_ / "cgroup.procs", fmt::format("{}", process));
  }

 private:
  explicit MemoryGroup(std::filesystem::path path) : path_(std::move(path)) {}
  static bool Write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream stream(file);
    stream << text << std::flush;
    return stream.good();
  }

  std::filesystem::path path_;
};

std::uint64_t PeakBytes(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

// Sends the same submission again and again over its own connection, each as soon as the last one
// is answered, and counts the answers.
class Submitter {
 public:
  Submitter(const std::string& address, std::vector<JobSpec> jobs, const std::atomic<bool>& stop)
      : jobs_(std::move(jobs)), stop_(stop), thread_([this, address] { Run(address); }) {}
  ~Submitter() { thread_.join(); }

  std::uint64_t accepted() const { return accepted_; }  // jobs
  std::uint64_t refused() const { return refused_; }
  std::uint64_t wrongly_refused() const { return wrongly_refused_; }

 private:
  void Run(const std::string& address) {
    wire::Context context;
    auto dealer = wire::Dealer::Connect(context, address);
    ASSERT_TRUE(dealer.has_value());
    wire::Poller poller;
    poller.Add(*dealer);
    std::uint64_t number = 0;
    std::string frame = wire::Encode(wire::ClientRequest{
        .number = ++number, .message = wire::ClientHello{.client = Uuid::Random()}});
    bool is_sent = false;
    while (!stop_) {
      if (!is_sent) is_sent = dealer->Send(frame) == wire::SendResult::kSent;
      poller.Wait(5ms);
      const auto answer = dealer->Receive();
      if (!answer) continue;
      const auto reply = wire::DecodeCoordinatorReply(*answer);
      ASSERT_TRUE(reply.has_value());
      if (const auto* accepted = std::get_if<wire::Accepted>(&reply->message)) {
        accepted_ += accepted->job_count;
      }
      if (const auto* refused = std::get_if<wire::Refused>(&reply->message)) {
        const FailureCode code = refused->failure.code;
        const bool is_typed = code == FailureCode::kBusy || code == FailureCode::kQuotaExceeded;
        (is_typed && refused->retry_after_ms > 0 ? refused_ : wrongly_refused_) += 1;
      }
      frame = wire::Encode(wire::ClientRequest{
          .number = ++number,
          .message = wire::SubmitJobs{.request_id = NewRequestId(), .jobs = jobs_}});
      is_sent = false;
    }
  }

  const std::vector<JobSpec> jobs_;
  const std::atomic<bool>& stop_;
  std::atomic<std::uint64_t> accepted_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<std::uint64_t> wrongly_refused_ = 0;
  std::thread thread_;
};

// Connections that send large frames, say no hello and read no answer.
class Strangers {
 public:
  Strangers(const std::string& address, const std::atomic<bool>& stop)
      : thread_([address, &stop] {
          wire::Context context;
          std::vector<wire::Dealer> dealers;
          for (int i = 0; i < kStrangers; ++i) {
            dealers.push_back(*wire::Dealer::Connect(context, address));
          }
          const std::string frame(wire::kMaxMessageBytes, 'x');
          while (!stop) {
            for (wire::Dealer& dealer : dealers) (void)dealer.Send(frame);
            std::this_thread::sleep_for(1ms);
          }
        }) {}
  ~Strangers() { thread_.join(); }

 private:
  std::thread thread_;
};

JobSpec SmallJob() { return {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"}}; }

TEST(Memory, ACoordinatorStaysWithinItsMemory) {
  auto cluster = LocalCluster::Start({.programs = LOOPFLEET_BIN_DIR,
                                      .workers = 0,
                                      .coordinator_arguments = {"--memory", "512MiB"}});
  ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
  const pid_t coordinator = cluster->coordinator_pid();
  const auto group = MemoryGroup::Make(kMemory);
  if (!group || !group->Enter(coordinator)) {
    fmt::print("no control group can be made here: its peak alone is compared with the limit\n");
  }
  JobSpec tagged = SmallJob();
  tagged.tag = '"' + std::string(60'000, 't') + '"';
  std::atomic<bool> stop = false;
  double slowest_s = 0;
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::uint64_t wrongly_refused = 0;
  {
    const Strangers strangers(cluster->address(), stop);
    std::deque<Submitter> submitters;
    for (int i = 0; i < kSubmitters; ++i) {
      submitters.emplace_back(cluster->address(), std::vector<JobSpec>(16, tagged), stop);
      submitters.emplace_back(cluster->address(), std::vector<JobSpec>(4'096, SmallJob()), stop);
    }
    auto client = Client::Connect({.address = cluster->address()});
    const auto end = std::chrono::steady_clock::now() + kLoadFor;
    while (client && std::chrono::steady_clock::now() < end) {
      const auto asked = std::chrono::steady_clock::now();
      const auto fleet = client->ShowFleet({});
      EXPECT_TRUE(fleet.has_value()) << fleet.error().message;
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - asked;
      slowest_s = std::max(slowest_s, took.count());
      std::this_thread::sleep_for(50ms);
    }
    stop = true;
    EXPECT_TRUE(client.has_value());
    for (const Submitter& submitter : submitters) {
      accepted += submitter.accepted();
      refused += submitter.refused();
      wrongly_refused += submitter.wrongly_refused();
    }
  }
  const std::uint64_t peak = PeakBytes(coordinator);
  fmt::print("{} jobs accepted, {} messages refused, peak {} MiB, slowest status {:.3f} s\n",
             accepted, refused, peak >> 20, slowest_s);
  EXPECT_GT(accepted, 0U);
  EXPECT_GT(refused, 0U) << "the load does not reach the limit";
  EXPECT_EQ(wrongly_refused, 0U);
  EXPECT_GT(peak, 0U) << "it has ended";
  EXPECT_LE(peak, kMemory);
  EXPECT_TRUE(cluster->TakeExits().empty());
}

}  // namespace
}  // namespace loopfleet::client
