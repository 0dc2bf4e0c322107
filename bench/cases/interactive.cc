// How long one client's job waits behind very many jobs of another client: the real daemon, and
// workers that speak the real protocol and take a fixed time for each job. The figure is the wait
// beyond the work already leased: from the moment when the job is accepted and a worker has room
// until the job arrives at a worker.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/rigs/result_line.h"
#include "bench/rigs/round_trips.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "common/base/check.h"
#include "common/base/number_in.h"
#include "common/base/quantile.h"
#include "common/job/loop_schedule.h"
#include "common/looptree/tree/key.h"
#include "common/wire/codec/codec.h"
#include "common/wire/transport/poller.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Time = SteadyClock::time_point;
using std::chrono::milliseconds;

constexpr std::uint32_t kWorkers = 4;
constexpr std::uint32_t kCredit = 8;
constexpr Nanos kJobTime = milliseconds(5);
constexpr Nanos kHeartbeat = milliseconds(500);
constexpr Nanos kLimit = std::chrono::seconds(20);  // for one job to reach a worker

JobSpec NullJob() {
  return {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"},
          .freshness = Freshness::kMeasureAgain};
}

// What the workers saw, for the client's thread. Thread-safe.
class Sightings {
 public:
  void Leased(BatchId batch, Time when) {
    const std::lock_guard lock(mutex_);
    leased_.try_emplace(batch, when);
  }
  void MadeRoom(Time when) {
    const std::lock_guard lock(mutex_);
    room_made_.push_back(when);
  }
  std::optional<Time> LeasedAt(BatchId batch) const {
    const std::lock_guard lock(mutex_);
    const auto found = leased_.find(batch);
    if (found == leased_.end()) return std::nullopt;
    return found->second;
  }
  // When a worker first had room after `when`, but no later than `latest`.
  Time RoomAfter(Time when, Time latest) const {
    const std::lock_guard lock(mutex_);
    const auto next = std::ranges::lower_bound(room_made_, when);
    return next == room_made_.end() ? latest : std::min(*next, latest);
  }

 private:
  mutable std::mutex mutex_;
  std::map<BatchId, Time> leased_;
  std::vector<Time> room_made_;  // ascending
};

// A worker that takes kJobTime for each lease, one at a time.
class PacedWorker {
 public:
  PacedWorker(wire::Context& context, const std::string& coordinator, std::uint32_t number,
              Sightings& sightings)
      : dealer_(wire::Dealer::Connect(context, coordinator).value()), sightings_(sightings) {
    const auto replayed = ReplayJob(NullJob());
    hello_ = {.worker = Uuid::Random(),
              .name = fmt::format("paced-{}", number),
              .pid = number,
              .credit = kCredit,
              .hardware = {.hardware_class = "paced", .model = "paced", .isa = "none"},
              .compiler = {.llvm = "0", .tier = "paced", .revision = "0"},
              .policy = "paced"};
    result_ = {.verdict = Measurement{.elapsed_ns = 1000,
                                      .elapsed_low_ns = 990,
                                      .elapsed_high_ns = 1010,
                                      .elapsed_min_ns = 1000,
                                      .elapsed_mean_ns = 1000,
                                      .spread = 0.01,
                                      .iterations_per_sample = 60,
                                      .samples_ns = std::vector<double>(15, 1000),
                                      .sample_flags = std::vector<std::uint8_t>(15, 0)},
               .subject = looptree::KeyOf(replayed->tree),
               .flop_count = looptree::FlopCount(replayed->tree.program()),
               .conditions = Conditions{.hardware = hello_.hardware,
                                        .compiler = hello_.compiler,
                                        .policy = hello_.policy,
                                        .isolation = "paced"}};
    Send(hello_);
  }

  wire::Dealer& dealer() { return dealer_; }

  void Work(Time now) {
    while (const auto frame = dealer_.Receive()) {
      const auto command = wire::DecodeWorkerCommand(*frame);
      LF_CHECK(command.has_value(), "{}", command.error().message);
      if (std::holds_alternative<wire::HelloWanted>(*command)) Send(hello_);
      const auto* leases = std::get_if<wire::Leases>(&*command);
      if (leases == nullptr) continue;
      for (const wire::Lease& lease : leases->leases) {
        sightings_.Leased(lease.job.batch, now);
        if (held_.empty()) done_at_ = now + kJobTime;
        held_.push_back({.lease = lease.lease, .job = lease.job});
      }
    }
    while (!held_.empty() && done_at_ <= now) {
      sightings_.MadeRoom(SteadyClock::now());
      Send(wire::Reports{
          .reports = {
              {.lease = held_.front().lease, .job = held_.front().job, .evaluation = result_}}});
      held_.pop_front();
      done_at_ += kJobTime;
    }
    if (now < next_beat_) return;
    wire::Heartbeat heartbeat;
    for (const auto& held : held_) heartbeat.held.push_back(held.lease);
    Send(heartbeat);
    next_beat_ = now + kHeartbeat;
  }

 private:
  void Send(const wire::WorkerMessage& message) {
    LF_CHECK(dealer_.Send(wire::Encode(message)) == wire::SendResult::kSent, "a full socket");
  }

  wire::Dealer dealer_;
  Sightings& sightings_;
  wire::WorkerHello hello_;
  Evaluation result_;
  std::deque<wire::HeldLease> held_;
  Time done_at_{};
  Time next_beat_{};
};

class PacedWorkers {
 public:
  PacedWorkers(std::string coordinator, Sightings& sightings)
      : coordinator_(std::move(coordinator)), sightings_(sightings), thread_([this] { Serve(); }) {}
  ~PacedWorkers() {
    stopping_ = true;
    thread_.join();
  }
  PacedWorkers(const PacedWorkers&) = delete;
  PacedWorkers& operator=(const PacedWorkers&) = delete;

 private:
  void Serve() {
    wire::Context context;
    std::deque<PacedWorker> workers;
    wire::Poller poller;
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      poller.Add(workers.emplace_back(context, coordinator_, i, sightings_).dealer());
    }
    while (!stopping_) {
      poller.Wait(milliseconds(1));
      for (PacedWorker& worker : workers) worker.Work(SteadyClock::now());
    }
  }

  std::string coordinator_;
  Sightings& sightings_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

Error ToError(const client::CallError& error) { return {error.kind, error.message}; }

double Milliseconds(SteadyClock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

struct Waits {
  std::vector<double> added_ms;  // beyond the work already leased
  std::vector<double> whole_ms;  // from sending the job until it arrives at a worker
};

// Submits jobs one at a time, each after the previous one is stored.
Result<Waits> Interact(const client::LocalCluster& cluster, const Sightings& sightings,
                       std::uint32_t jobs) {
  auto client = client::Client::Connect({.address = cluster.address(), .program = "interactive"});
  if (!client) return std::unexpected(ToError(client.error()));
  Waits waits;
  for (std::uint32_t i = 0; i < jobs; ++i) {
    const std::vector<JobSpec> one{NullJob()};
    const Time sent = SteadyClock::now();
    const auto batch = client->Submit(one);
    if (!batch) return std::unexpected(ToError(batch.error()));
    const Time accepted = SteadyClock::now();
    std::optional<Time> leased;
    while (!(leased = sightings.LeasedAt(*batch))) {
      if (SteadyClock::now() - accepted > kLimit) {
        return Fail(ErrorKind::kTimeout, "an interactive job reached no worker");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    waits.whole_ms.push_back(Milliseconds(*leased - sent));
    const Time could_be = std::min(*leased, sightings.RoomAfter(accepted, *leased));
    waits.added_ms.push_back(
        Milliseconds(*leased - std::max(could_be, std::min(accepted, *leased))));
    const auto page = client->Fetch(*batch, 0, kLimit);
    if (!page) return std::unexpected(ToError(page.error()));
    if (page->outcomes.empty()) return Fail(ErrorKind::kTimeout, "a job did not finish");
  }
  return waits;
}

Status Run(std::uint32_t queued, std::uint32_t jobs) {
  LF_TRY(auto cluster,
         client::LocalCluster::Start({.programs = client::OwnDirectory(), .workers = 0}));
  Sightings sightings;
  const PacedWorkers workers(cluster.worker_address(), sightings);
  LF_TRY(const Waits alone, Interact(cluster, sightings, jobs));

  auto bulk = client::Client::Connect({.address = cluster.address(), .program = "bulk"});
  if (!bulk) return std::unexpected(ToError(bulk.error()));
  const auto batch = bulk->Submit(std::vector<JobSpec>(queued, NullJob()));
  if (!batch) return std::unexpected(ToError(batch.error()));
  RoundTrips round_trips;
  LF_TRY(const Waits behind, Interact(cluster, sightings, jobs));
  const std::vector<double> bare_ms = round_trips.Stop();
  const auto info = bulk->ShowBatch(*batch);
  if (!info) return std::unexpected(ToError(info.error()));

  const nlohmann::ordered_json details = {{"queued", queued - info->finished},
                                          {"jobs", jobs},
                                          {"workers", kWorkers},
                                          {"credit", kCredit},
                                          {"job_ms", Milliseconds(kJobTime)}};
  for (const auto& [name, q] : {std::pair{"p50", 0.5}, std::pair{"p99", 0.99}}) {
    Print({.bench = "interactive",
           .name = fmt::format("added_wait_{}", name),
           .value = Quantile(behind.added_ms, q),
           .unit = "ms beyond the work already leased",
           .peer = "a bare message and its answer over the same sockets at the same time",
           .peer_value = Quantile(bare_ms, q),
           .details = details});
    Print({.bench = "interactive",
           .name = fmt::format("sent_to_worker_{}", name),
           .value = Quantile(behind.whole_ms, q),
           .unit = "ms",
           .peer = "nothing else queued",
           .peer_value = Quantile(alone.whole_ms, q),
           .details = details});
  }
  cluster.Stop();
  return {};
}

}  // namespace
}  // namespace loopfleet::bench

// bench_interactive [QUEUED [JOBS]]
int main(int argc, char** argv) {
  std::uint32_t numbers[2] = {1'000'000, 300};
  for (int i = 1; i < argc && i <= 2; ++i) {
    numbers[i - 1] = loopfleet::NumberIn<std::uint32_t>(argv[i]).value_or(0);
    if (numbers[i - 1] == 0) {
      fmt::print(stderr, "usage: bench_interactive [QUEUED [JOBS]]\n");
      return 2;
    }
  }
  if (const auto status = loopfleet::bench::Run(numbers[0], numbers[1]); !status) {
    fmt::print(stderr, "bench interactive: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
