// How many null jobs a second go through the coordinator, from accepted (on disk) to stored (on
// disk): real rows (20 actions, 15 samples), the real daemon, stub workers that speak the real
// protocol.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "bench/redis_peer.h"
#include "bench/result_line.h"
#include "bench/stub_workers.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "common/looptree/key.h"
#include "common/wire/codec.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint32_t kBatchedJobs = 200'000;
constexpr std::uint32_t kSingleJobs = 20'000;
constexpr std::uint32_t kOutstanding = 256;  // unbatched submissions under way at once
constexpr std::uint32_t kActions = 20;
constexpr Nanos kLookPause = std::chrono::milliseconds(2);
constexpr Nanos kSilenceLimit = std::chrono::seconds(60);

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// Measured anew each time, so that nothing is answered from the store or by an equal job.
JobSpec NullJob() {
  JobSpec job{.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"},
              .freshness = Freshness::kMeasureAnew};
  while (job.actions.size() < kActions) {
    job.actions.emplace_back(looptree::Down{});
    job.actions.emplace_back(looptree::Up{});
  }
  return job;
}

StubWorkersOptions StubsFor(const client::LocalCluster& cluster, const JobSpec& job) {
  const auto replayed = ReplayJob(job);
  return {.coordinator = cluster.worker_address(),
          .tree = looptree::KeyOf(replayed->tree),
          .flop_count = looptree::FlopCount(replayed->tree.program())};
}

Error ToError(const client::CallError& error) { return {error.kind, error.message}; }

// Until all jobs of the batch are stored.
Status AwaitStored(client::Client& client, BatchId batch) {
  while (true) {
    const auto info = client.ShowBatch(batch);
    if (!info) return std::unexpected(ToError(info.error()));
    if (info->failed > 0) return Fail(ErrorKind::kCorrupt, "null jobs failed");
    if (info->finished == info->job_count) return {};
    std::this_thread::sleep_for(kLookPause);
  }
}

// Until the newest batches are stored. Jobs go out in the order in which they came, so those before
// them are too, or nearly.
Status AwaitNewest(client::Client& client) {
  while (true) {
    const auto list = client.ListBatches(wire::kMaxBatchesPerList);
    if (!list) return std::unexpected(ToError(list.error()));
    const auto stored = [](const wire::BatchInfo& info) { return info.finished == info.job_count; };
    if (std::ranges::all_of(list->batches, stored)) return {};
    std::this_thread::sleep_for(kLookPause);
  }
}

Result<double> BatchedRate(const client::LocalCluster& cluster) {
  auto client = client::Client::Connect({.address = cluster.address(), .program = "bench"});
  if (!client) return std::unexpected(ToError(client.error()));
  const std::vector<JobSpec> jobs(kBatchedJobs, NullJob());
  const auto start = SteadyClock::now();
  const auto batch = client->Submit(jobs);
  if (!batch) return std::unexpected(ToError(batch.error()));
  LF_TRY_VOID(AwaitStored(*client, *batch));
  return kBatchedJobs / SecondsSince(start);
}

// One job a message, a batch of its own each, many messages under way.
class SingleSubmitter {
 public:
  explicit SingleSubmitter(const std::string& address)
      : dealer_(wire::Dealer::Connect(context_, address).value()) {
    poller_.Add(dealer_);
  }

  // Ends when the last job is accepted and gives the last batch; the others are before it.
  Status Run(std::uint32_t jobs) {
    Send(wire::ClientHello{.client = Uuid::Random(), .program = "bench"});
    const JobSpec job = NullJob();
    std::uint32_t sent = 0;
    std::uint32_t accepted = 0;
    auto heard_at = SteadyClock::now();
    while (accepted < jobs) {
      while (welcomed_ && sent < jobs && sent - accepted < kOutstanding) {
        Send(wire::SubmitJobs{.request_id = Uuid::Random(), .jobs = {job}});
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
  void Send(const wire::ClientMessage& message) {
    const std::string frame =
        wire::Encode(wire::ClientRequest{.number = ++number_, .message = message});
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

Result<double> SingleRate(const client::LocalCluster& cluster) {
  auto client = client::Client::Connect({.address = cluster.address(), .program = "bench"});
  if (!client) return std::unexpected(ToError(client.error()));
  SingleSubmitter submitter(cluster.address());
  const auto start = SteadyClock::now();
  LF_TRY_VOID(submitter.Run(kSingleJobs));
  LF_TRY_VOID(AwaitNewest(*client));
  const double rate = kSingleJobs / SecondsSince(start);
  for (const BatchId batch : submitter.batches()) LF_TRY_VOID(AwaitStored(*client, batch));
  return rate;
}

Status RunCase(const std::string& name, Result<double> (*measure)(const client::LocalCluster&),
               std::uint32_t jobs, std::uint32_t per_message, const RedisLoad& peer_load) {
  // A database of its own: neither case sees the other's rows.
  LF_TRY(auto cluster,
         client::LocalCluster::Start({.programs = client::OwnDirectory(), .workers = 0}));
  double rate = 0;
  {
    const StubWorkers stubs(StubsFor(cluster, NullJob()));
    LF_TRY(rate, measure(cluster));
  }
  cluster.Stop();
  LF_TRY(const auto peer, RedisRate(peer_load));
  Print({.bench = "queue",
         .name = name,
         .value = rate,
         .unit = "jobs/s",
         .peer = fmt::format("redis lists, appendfsync always, {} jobs a command",
                             peer_load.jobs_per_message),
         .peer_value = peer,
         .details = {
             {"jobs", jobs}, {"jobs_per_message", per_message}, {"peer_jobs", peer_load.jobs}}});
  return {};
}

Status Run() {
  LF_TRY_VOID(RunCase("batched", BatchedRate, kBatchedJobs, wire::kMaxJobsPerMessage,
                      {.jobs = 200'000, .jobs_per_message = 1000, .outstanding = 16}));
  return RunCase("unbatched", SingleRate, kSingleJobs, 1,
                 {.jobs = 20'000, .outstanding = kOutstanding});
}

}  // namespace
}  // namespace loopfleet::bench

int main() {
  if (const auto status = loopfleet::bench::Run(); !status) {
    fmt::print(stderr, "bench queue: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
