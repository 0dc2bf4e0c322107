// Jobs per second: many in a message, one in a message, and repeats of stored jobs.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/cases/queue_case.h"
#include "bench/peers/disk_peer.h"
#include "bench/peers/queue_peers.h"
#include "bench/peers/redis_peer.h"
#include "bench/rigs/queue_rig.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/stub_workers.h"
#include "client/request_id.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint32_t kClients = 16;  // each with one message in flight
constexpr std::uint32_t kBatchedJobs = 500'000;
constexpr std::uint32_t kSingleJobs = 50'000;
constexpr std::uint32_t kRepeats = 500'000;
constexpr std::uint32_t kDistinct = 1'000;
constexpr std::uint32_t kRowsPerCommit = 20'000;  // as the coordinator's under load
constexpr std::uint32_t kOutstanding = 256;       // single submissions in flight
constexpr Nanos kLookPause = std::chrono::milliseconds(2);
constexpr Nanos kSilenceLimit = std::chrono::seconds(60);

// Waits until the newest batches are stored. Jobs are dispatched in the order of arrival, so nearly
// all earlier ones are stored then, too.
Status AwaitNewest(client::Client& client) {
  while (true) {
    const auto list = client.ListBatches(wire::kMaxBatchesPerList);
    if (!list) return std::unexpected(ToError(list.error()));
    const auto stored = [](const wire::BatchInfo& info) { return info.finished == info.job_count; };
    if (std::ranges::all_of(list->batches, stored)) return {};
    std::this_thread::sleep_for(kLookPause);
  }
}

// Each client submits its share as a batch. Waits until all are stored.
Status SubmitTogether(const QueueRig& rig, const std::vector<JobSpec>& jobs) {
  std::vector<Status> ended(kClients);
  {
    std::vector<std::jthread> clients;
    const std::size_t share = jobs.size() / kClients;
    for (std::uint32_t i = 0; i < kClients; ++i) {
      clients.emplace_back([&, i] {
        const auto submit = [&]() -> Status {
          LF_TRY(auto client, rig.Connect());
          const auto batch = client.Submit(std::span(jobs).subspan(i * share, share));
          if (!batch) return std::unexpected(ToError(batch.error()));
          return AwaitStored(client, *batch);
        };
        ended[i] = submit();
      });
    }
  }
  for (Status& status : ended) LF_TRY_VOID(std::move(status));
  return {};
}

// Sends one job a message, each as its own batch, with many messages in flight.
class SingleSubmitter {
 public:
  explicit SingleSubmitter(const std::string& address)
      : dealer_(wire::Dealer::Connect(context_, address).value()) {
    poller_.Add(dealer_);
  }

  // Returns when the last job is accepted.
  Status Run(std::uint32_t jobs) {
    Send(wire::ClientHello{.client = Uuid::Random(), .program = "bench"});
    wire::SubmitJobs submit{.jobs = {NullJob()}};
    std::uint32_t sent = 0;
    std::uint32_t accepted = 0;
    auto heard_at = SteadyClock::now();
    while (accepted < jobs) {
      while (welcomed_ && sent < jobs && sent - accepted < kOutstanding) {
        submit.request_id = client::NewRequestId();
        Send(submit);
        ++sent;
      }
      poller_.Wait(std::chrono::milliseconds(10));
      while (const auto frame = dealer_.Receive()) {
        heard_at = SteadyClock::now();
        LF_TRY(const std::uint32_t more, Hear(*frame));
        accepted += more;
      }
      if (SteadyClock::now() - heard_at > kSilenceLimit) {
        return Fail(ErrorKind::kTimeout, "the coordinator does not answer");
      }
    }
    return {};
  }

  const std::vector<BatchId>& batches() const { return batches_; }

 private:
  void Send(wire::ClientMessage message) {
    const std::string frame =
        wire::Encode(wire::ClientRequest{.number = ++number_, .message = std::move(message)});
    while (dealer_.Send(frame) != wire::SendResult::kSent)
      poller_.Wait(std::chrono::milliseconds(1));
  }

  Result<std::uint32_t> Hear(const std::string& frame) {
    const auto reply = wire::DecodeCoordinatorReply(frame);
    if (!reply) return Fail(ErrorKind::kCorrupt, reply.error().message);
    if (const auto* refused = std::get_if<wire::Refused>(&reply->message)) {
      return Fail(ErrorKind::kFull, refused->failure.message);
    }
    if (std::holds_alternative<wire::Welcome>(reply->message)) welcomed_ = true;
    const auto* accepted = std::get_if<wire::Accepted>(&reply->message);
    if (accepted == nullptr) return 0u;
    batches_.push_back(accepted->batch);
    return accepted->job_count;
  }

  wire::Context context_;
  wire::Dealer dealer_;
  wire::Poller poller_;
  std::uint64_t number_ = 0;
  bool welcomed_ = false;
  std::vector<BatchId> batches_;
};

nlohmann::ordered_json DetailsOf(const QueueCost& cost, std::uint32_t jobs,
                                 std::uint32_t jobs_per_message) {
  return {{"jobs", jobs},
          {"jobs_per_message", jobs_per_message},
          {"coordinator_cpu_us_each", cost.coordinator_cpu_seconds / jobs * 1e6},
          {"generator_cpu_us_each", cost.generator_cpu_seconds / jobs * 1e6}};
}

struct Peer {
  std::string text;
  PeerJobs rate;
};

// Prints one line per peer: the same value with another ratio.
Status PrintBeside(const std::string& name, std::uint32_t jobs, std::uint32_t per_message,
                   const QueueCost& cost, const std::vector<Peer>& peers) {
  for (const Peer& peer : peers) {
    LF_TRY(const auto rate, peer.rate);
    Print({.bench = "queue",
           .name = name,
           .value = jobs / cost.seconds,
           .unit = "jobs/s",
           .peer = peer.text,
           .peer_value = rate,
           .details = DetailsOf(cost, jobs, per_message)});
  }
  return {};
}

}  // namespace

Status RunBatchedCase() {
  QueueCost cost;
  {
    LF_TRY(const QueueRig rig, QueueRig::Start());
    const StubWorkers stubs({.coordinator = rig.cluster().worker_address()});
    const std::vector<JobSpec> jobs(kBatchedJobs, NullJob());
    const QueueRig::Watch watch(rig);
    LF_TRY_VOID(SubmitTogether(rig, jobs));
    cost = watch.Read();
  }
  return PrintBeside("batched", kBatchedJobs, wire::kMaxJobsPerMessage, cost,
                     {{"redis lists, appendfsync always, 1000 jobs a command",
                       RedisRate({.jobs = 200'000, .jobs_per_message = 1000, .outstanding = 16})}});
}

Status RunUnbatchedCase() {
  QueueCost cost;
  {
    LF_TRY(const QueueRig rig, QueueRig::Start());
    LF_TRY(auto client, rig.Connect());
    const StubWorkers stubs({.coordinator = rig.cluster().worker_address()});
    SingleSubmitter submitter(rig.cluster().address());
    const QueueRig::Watch watch(rig);
    LF_TRY_VOID(submitter.Run(kSingleJobs));
    LF_TRY_VOID(AwaitNewest(client));
    cost = watch.Read();
    for (const BatchId batch : submitter.batches()) LF_TRY_VOID(AwaitStored(client, batch));
  }
  return PrintBeside(
      "unbatched", kSingleJobs, 1, cost,
      {{"redis lists, appendfsync always, 1 job a command",
        RedisRate({.jobs = 20'000, .outstanding = kOutstanding})},
       {"beanstalkd -f0, 4 workers", BeanstalkdRate({.jobs = 2'000, .outstanding = kOutstanding})},
       {"NATS JetStream, file storage, synced every 2 minutes: not durable",
        JetStreamRate({.jobs = 20'000, .outstanding = kOutstanding})},
       {"NATS publish and subscribe, in memory: not durable",
        NatsRate({.jobs = 50'000, .outstanding = kOutstanding})}});
}

Status RunLatencyCase() {
  constexpr int kWarmUp = 200;
  constexpr int kMeasured = 3'000;
  std::vector<double> took_us;
  {
    LF_TRY(const QueueRig rig, QueueRig::Start());
    LF_TRY(auto client, rig.Connect());
    const StubWorkers stubs({.coordinator = rig.cluster().worker_address()});
    const std::vector<JobSpec> job = {NullJob()};
    for (int i = 0; i < kWarmUp + kMeasured; ++i) {
      const auto start = SteadyClock::now();
      const auto done = client.Evaluate(job, [](const Outcome&) {});
      if (!done) return std::unexpected(ToError(done.error()));
      const std::chrono::duration<double, std::micro> took = SteadyClock::now() - start;
      if (done->failed > 0) return Fail(ErrorKind::kCorrupt, "a null job failed");
      if (i >= kWarmUp) took_us.push_back(took.count());
    }
  }
  std::ranges::sort(took_us);
  LF_TRY(const double sync_us, DiskSyncMicroseconds());
  Print({.bench = "queue",
         .name = "one job at a time, submitted to outcome in hand, durable, p50",
         .value = took_us[kMeasured / 2],
         .unit = "us",
         .peer = "fsync of this disk, median; a job waits for two",
         .peer_value = sync_us,
         .details = {{"p99_us", took_us[kMeasured * 99 / 100]}, {"jobs", kMeasured}}});
  return {};
}

Status RunRepeatsCase() {
  LF_TRY(const QueueRig rig, QueueRig::Start());
  LF_TRY(auto client, rig.Connect());
  const StubWorkers stubs({.coordinator = rig.cluster().worker_address()});
  std::vector<JobSpec> jobs;
  for (std::uint32_t i = 0; i < kDistinct; ++i) jobs.push_back(RepeatableJob(i));
  const auto first = client.Submit(jobs);
  if (!first) return std::unexpected(ToError(first.error()));
  LF_TRY_VOID(AwaitStored(client, *first));
  for (std::uint32_t i = kDistinct; i < kRepeats; ++i) jobs.push_back(jobs[i % kDistinct]);

  const QueueRig::Watch watch(rig);
  LF_TRY_VOID(SubmitTogether(rig, jobs));
  const QueueCost cost = watch.Read();
  const auto batches = client.ListBatches(kClients);
  if (!batches) return std::unexpected(ToError(batches.error()));
  for (const wire::BatchInfo& info : batches->batches) {
    if (info.from_store == info.job_count) continue;
    return Fail(ErrorKind::kCorrupt,
                fmt::format("{} of {} came from the store", info.from_store, info.job_count));
  }
  LF_TRY(const double bare,
         BareInsertRate(rig.database(), kClients, wire::kMaxJobsPerMessage, kRowsPerCommit));
  Print({.bench = "queue",
         .name = "repeats, answered from the store, each answer durable",
         .value = kRepeats / cost.seconds,
         .unit = "jobs/s",
         .peer = "SQLite alone inserting the same rows of jobs and outcomes, one thread",
         .peer_value = bare,
         .details = DetailsOf(cost, kRepeats, wire::kMaxJobsPerMessage)});
  return {};
}

}  // namespace loopfleet::bench
