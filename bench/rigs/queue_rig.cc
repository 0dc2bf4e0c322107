#include "bench/rigs/queue_rig.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "bench/rigs/process_time.h"

namespace loopfleet::bench {
namespace {

constexpr std::uint32_t kActions = 20;
constexpr Nanos kLongPoll = std::chrono::seconds(1);

}  // namespace

JobSpec NullJob() {
  JobSpec job{.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"},
              .freshness = Freshness::kMeasureAgain};
  while (job.actions.size() < kActions) {
    job.actions.emplace_back(looptree::Down{});
    job.actions.emplace_back(looptree::Up{});
  }
  return job;
}

JobSpec RepeatableJob(std::uint32_t which) {
  JobSpec job = NullJob();
  job.freshness = Freshness::kAllowStored;
  // The size makes each tree different.
  job.source = looptree::BenchmarkUri{"benchmark://loop_tool-cpu-v0/" + std::to_string(1 + which)};
  job.actions.assign(kActions, looptree::ToggleMode{});
  return job;
}

Error ToError(const client::CallError& error) { return {error.kind, error.message}; }

namespace {

constexpr const char* kDatabase = "queue.db";

Result<client::LocalCluster> StartCluster(const std::filesystem::path& directory,
                                          const std::vector<std::string>& arguments) {
  return client::LocalCluster::Start({.programs = client::OwnDirectory(),
                                      .workers = 0,
                                      .coordinator_arguments = arguments,
                                      .database = directory / kDatabase});
}

}  // namespace

Result<QueueRig> QueueRig::Start(const Options& options) {
  LF_TRY(auto directory, CreateScratchDir());
  if (options.fill) {
    LF_TRY_VOID(options.fill(directory.path() / kDatabase));
  }
  LF_TRY(auto cluster, StartCluster(directory.path(), options.arguments));
  return QueueRig(std::move(directory), options.arguments, std::move(cluster));
}

Status QueueRig::Restart() {
  ::kill(cluster_->coordinator_pid(), SIGKILL);
  cluster_.reset();
  LF_TRY(auto cluster, StartCluster(directory_.path(), arguments_));
  cluster_.emplace(std::move(cluster));
  return {};
}

Result<client::Client> QueueRig::Connect() const {
  auto client = client::Client::Connect({.address = cluster_->address(), .program = "bench"});
  if (!client) return std::unexpected(ToError(client.error()));
  return *std::move(client);
}

QueueRig::Watch::Watch(const QueueRig& rig)
    : rig_(rig),
      start_(std::chrono::steady_clock::now()),
      coordinator_(ProcessSeconds(rig.cluster().coordinator_pid())),
      generator_(ProcessSeconds(::getpid())) {}

QueueCost QueueRig::Watch::Read() const {
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start_;
  return {
      .seconds = wall.count(),
      .coordinator_cpu_seconds = ProcessSeconds(rig_.cluster().coordinator_pid()) - coordinator_,
      .generator_cpu_seconds = ProcessSeconds(::getpid()) - generator_};
}

namespace {

// The first failure of a batch that has one.
std::unexpected<Error> WhyFailed(client::Client& client, BatchId batch) {
  std::uint64_t after = 0;
  while (true) {
    const auto page = client.Fetch(batch, after, kLongPoll);
    if (!page) return std::unexpected(ToError(page.error()));
    for (const Outcome& outcome : page->outcomes) {
      if (!outcome.evaluation.ok()) {
        return Fail(ErrorKind::kCorrupt, outcome.evaluation.failure().message);
      }
      after = outcome.sequence;
    }
  }
}

}  // namespace

Status AwaitStored(client::Client& client, BatchId batch) {
  while (true) {
    const auto info = client.ShowBatch(batch);
    if (!info) return std::unexpected(ToError(info.error()));
    if (info->failed > 0) return WhyFailed(client, batch);
    if (info->finished == info->job_count) return {};
    const auto last = client.Fetch(batch, info->job_count - 1, kLongPoll);
    if (!last) return std::unexpected(ToError(last.error()));
  }
}

}  // namespace loopfleet::bench
