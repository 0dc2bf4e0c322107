#include "tests/simulation/disk/store_disk.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "coordinator/shell/observer.h"
#include "storage/sqlite/sqlite.h"

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

StoreDisk::StoreDisk(std::uint64_t seed) : files_(seed) {
  std::string pattern = (std::filesystem::temp_directory_path() / "lf_simulation_XXXXXX").string();
  const char* made = ::mkdtemp(pattern.data());
  LF_CHECK(made != nullptr, "no directory {}", pattern);
  directory_ = made;
}

StoreDisk::~StoreDisk() {
  Close();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

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
  const std::filesystem::path path = directory_ / "simulated.db";
  LF_TRY(store_, storage::Store::Open(path));
  LF_TRY(reader_, storage::StoreReader::Open(path, store_->result_keys()));
  {
    LF_TRY(const auto connection,
           storage::Connection::Open(path, storage::Access::kReadOnly, storage::kBusyWait));
    LF_TRY(const std::int64_t damaged,
           connection->Number("SELECT count(*) FROM pragma_integrity_check "
                              "WHERE integrity_check <> 'ok'"));
    if (damaged != 0) return Fail(ErrorKind::kCorrupt, "the database is damaged");
  }
  resolver_ = std::make_unique<coordinator::JobResolver>(*reader_, Metrics(), kClock);
  answers_ = std::make_unique<coordinator::StorageQueries>(*reader_);
  return {};
}

void StoreDisk::Close() {
  answers_.reset();
  resolver_.reset();
  reader_.reset();
  store_.reset();
}

void StoreDisk::CrashNow(Crash how, std::span<const storage::Write> under_way, Dice& dice) {
  if (!under_way.empty() && store_) {
    files_.FailAt(files_.operations() + 1 + dice.Index(24), DiskFault::kDeath);
    (void)store_->Apply(under_way);
  }
  files_.Die();
  Close();  // which changes nothing any more
  if (how == Crash::kPower) {
    files_.Reboot(dice.Next());
  } else {
    files_.Restart();
  }
}

Status StoreDisk::Apply(std::span<const storage::Write> writes) {
  const Status applied = store_->Apply(writes);
  files_.Mend();
  return applied;
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
