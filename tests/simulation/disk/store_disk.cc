#include "tests/simulation/disk/store_disk.h"

#include <utility>

#include "common/base/check.h"
#include "coordinator/shell/observer.h"
#include "tests/simulation/job_pool.h"

namespace loopfleet::simulation {
namespace {

constexpr std::uint32_t kMostBatches = 1000;  // far more than a seed has

monitoring::CoordinatorMetrics& Metrics() {
  static monitoring::Registry registry;
  static monitoring::CoordinatorMetrics metrics(registry, coordinator::AllLabels());
  return metrics;
}

// No job of the simulation asks how old a result is.
class StoppedClock final : public Clock {
 public:
  Instant Now() const override { return {}; }
  WallTime WallNow() const override { return WallTime(std::chrono::seconds(1'700'000'000)); }
};

}  // namespace

StoreDisk::~StoreDisk() { StoreDisk::Close(); }

Result<storage::Recovery> StoreDisk::Open() {
  const Status opened = OpenAll();
  if (!opened) {
    Close();
    return std::unexpected(opened.error());
  }
  return store_->Recover();
}

Status StoreDisk::OpenAll() {
  static const StoppedClock kClock;
  LF_TRY(store_, OpenStore());
  LF_TRY(reader_, store_->OpenReader());
  resolver_ =
      std::make_unique<coordinator::JobResolver>(*reader_, JobPool::Memory(), Metrics(), kClock);
  answers_ = std::make_unique<coordinator::StorageQueries>(*reader_);
  return {};
}

void StoreDisk::Close() {
  answers_.reset();
  resolver_.reset();
  reader_.reset();
  store_.reset();
}

coordinator::ResolvedJob StoreDisk::Resolve(JobSpec spec,
                                            const coordinator::StoredConditions& conditions) {
  return resolver_->Resolve(std::move(spec), conditions);
}

Result<std::optional<storage::StoredRequest>> StoreDisk::FindRequest(const Uuid& client,
                                                                     const Uuid& request) {
  return reader_->FindRequest(client, request);
}

wire::CoordinatorMessage StoreDisk::Outcomes(const wire::FetchOutcomes& fetch) {
  return answers_->Outcomes(fetch);
}
wire::CoordinatorMessage StoreDisk::Answer(const wire::ListBatches& list) {
  return answers_->Answer(list);
}
wire::CoordinatorMessage StoreDisk::Answer(const wire::ShowBatch& show) {
  return answers_->Answer(show);
}
wire::CoordinatorMessage StoreDisk::Answer(const wire::ExplainJob& explain) {
  return answers_->Answer(explain);
}
wire::CoordinatorMessage StoreDisk::Job(JobId job,
                                        const std::optional<coordinator::LiveJob>& live) {
  return answers_->Job(job, live);
}

wire::CoordinatorMessage StoreDisk::Answer(const wire::ListOutcomes& list) {
  return answers_->Answer(list);
}
wire::CoordinatorMessage StoreDisk::Answer(const wire::FindBest& find) {
  return answers_->Answer(find);
}

std::optional<storage::StoredJob> StoreDisk::Find(JobId job) {
  auto found = reader_->ReadJob(job);
  LF_CHECK(found, "{}", found.error().message);
  return *std::move(found);
}

std::vector<storage::StoredBatch> StoreDisk::AllBatches() {
  auto batches = reader_->ListBatches(kMostBatches);
  LF_CHECK(batches, "{}", batches.error().message);
  return *std::move(batches);
}

}  // namespace loopfleet::simulation
