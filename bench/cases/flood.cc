// How long a client waits for the answer to a small request while another client floods the
// coordinator: many connections, each with large submissions of jobs that the store can answer, the
// next as soon as one is accepted. Uses the real daemon and a real database.

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "bench/rigs/queue_rig.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/stopwatch.h"
#include "bench/rigs/stub_workers.h"
#include "client/request_id.h"
#include "common/base/check.h"
#include "common/base/quantile.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint32_t kConnections = 64;
constexpr std::uint32_t kJobs = 2'000;    // in a submission of nearly 1 MiB
constexpr std::uint32_t kDistinct = 250;  // different jobs
constexpr int kAsked = 200;               // requests of each kind, at most
constexpr std::chrono::seconds kAskFor{30};
constexpr milliseconds kPause{10};  // between requests

std::vector<JobSpec> LargeSubmission() {
  std::vector<JobSpec> jobs;
  for (std::uint32_t i = 0; i < kJobs; ++i) jobs.push_back(RepeatableJob(i % kDistinct));
  return jobs;
}

class Flood {
 public:
  explicit Flood(std::string address) : address_(std::move(address)), thread_([this] { Run(); }) {}
  ~Flood() {
    stopping_ = true;
    thread_.join();
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  std::uint64_t accepted() const { return accepted_; }
  std::uint64_t refused() const { return refused_; }

 private:
  struct Connection {
    wire::Dealer dealer;
    bool welcomed = false;
    bool waits = false;  // for an answer
    SteadyClock::time_point not_before{};
  };

  void Send(Connection& connection, wire::ClientMessage message) {
    connection.waits = true;
    const auto sent = connection.dealer.Send(
        wire::Encode(wire::ClientRequest{.number = ++number_, .message = std::move(message)}));
    LF_CHECK(sent == wire::SendResult::kSent, "one request at a time fits");
  }

  void Hear(Connection& connection, const std::string& frame) {
    const auto reply = wire::DecodeCoordinatorReply(frame);
    LF_CHECK(reply.has_value(), "{}", reply.error().message);
    connection.waits = false;
    if (std::holds_alternative<wire::Welcome>(reply->message)) connection.welcomed = true;
    if (const auto* accepted = std::get_if<wire::Accepted>(&reply->message)) {
      accepted_ += accepted->job_count;
    }
    if (const auto* refused = std::get_if<wire::Refused>(&reply->message)) {
      ++refused_;
      connection.not_before = SteadyClock::now() + milliseconds(refused->retry_after_ms);
    }
  }

  void Run() {
    wire::Context context;
    wire::Poller poller;
    std::deque<Connection> connections;
    const Uuid client = Uuid::Random();
    for (std::uint32_t i = 0; i < kConnections; ++i) {
      connections.push_back({.dealer = wire::Dealer::Connect(context, address_).value()});
      poller.Add(connections.back().dealer);
      Send(connections.back(), wire::ClientHello{.client = client, .program = "flood"});
    }
    wire::SubmitJobs submit{.jobs = LargeSubmission()};
    while (!stopping_) {
      poller.Wait(milliseconds(1));
      for (Connection& connection : connections) {
        while (const auto frame = connection.dealer.Receive()) Hear(connection, *frame);
        if (!connection.welcomed || connection.waits) continue;
        if (SteadyClock::now() < connection.not_before) continue;
        submit.request_id = client::NewRequestId();
        Send(connection, submit);
      }
    }
  }

  std::string address_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> accepted_ = 0;  // jobs
  std::atomic<std::uint64_t> refused_ = 0;   // messages
  std::uint64_t number_ = 0;
  std::thread thread_;
};

struct Waits {
  std::vector<double> listed_ms;    // from the request for the list of workers to its answer
  std::vector<double> accepted_ms;  // from sending a job until it is accepted (on disk)
};

Result<Waits> Ask(const QueueRig& rig) {
  LF_TRY(auto client, rig.Connect());
  const std::vector<JobSpec> one = {NullJob()};
  Waits waits;
  const auto end = SteadyClock::now() + kAskFor;
  for (int i = 0; i < kAsked && SteadyClock::now() < end; ++i) {
    std::this_thread::sleep_for(kPause);
    const auto asked = SteadyClock::now();
    const auto workers = client.ListWorkers();
    if (!workers) return std::unexpected(ToError(workers.error()));
    waits.listed_ms.push_back(Since<std::milli>(asked));
    std::this_thread::sleep_for(kPause);
    const auto sent = SteadyClock::now();
    const auto batch = client.Submit(one);
    if (!batch) return std::unexpected(ToError(batch.error()));
    waits.accepted_ms.push_back(Since<std::milli>(sent));
  }
  return waits;
}

Status Run() {
  LF_TRY(const QueueRig rig, QueueRig::Start());
  const StubWorkers stubs({.coordinator = rig.cluster().worker_address()});
  {
    LF_TRY(auto client, rig.Connect());
    std::vector<JobSpec> jobs = LargeSubmission();
    jobs.resize(kDistinct);
    const auto first = client.Submit(jobs);
    if (!first) return std::unexpected(ToError(first.error()));
    LF_TRY_VOID(AwaitStored(client, *first));
  }
  LF_TRY(const Waits alone, Ask(rig));
  const QueueRig::Watch watch(rig);
  const Flood flood(rig.cluster().address());
  LF_TRY(const Waits beside, Ask(rig));
  const QueueCost cost = watch.Read();
  const nlohmann::ordered_json details = {
      {"asked", beside.listed_ms.size()},
      {"connections", kConnections},
      {"jobs_per_message", kJobs},
      {"others_jobs_per_second", static_cast<double>(flood.accepted()) / cost.seconds},
      {"others_refused", flood.refused()}};
  const auto print = [&](std::string_view what, const std::vector<double>& values,
                         const std::vector<double>& peer_values) {
    for (const auto& [name, share] : {std::pair{"p50", 0.5}, std::pair{"p99", 0.99}}) {
      Print({.bench = "flood",
             .name = fmt::format("{}_{}", what, name),
             .value = Quantile(values, share),
             .unit = "ms",
             .peer = "nobody else asks for anything",
             .peer_value = Quantile(peer_values, share),
             .details = details});
    }
  };
  print("list_workers", beside.listed_ms, alone.listed_ms);
  print("one_job_accepted", beside.accepted_ms, alone.accepted_ms);
  return {};
}

}  // namespace
}  // namespace loopfleet::bench

int main() {
  if (const auto status = loopfleet::bench::Run(); !status) {
    fmt::print(stderr, "bench flood: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
