#pragma once
// StoreDisk: the real storage (storage/store.h, the event loop's readers and admission) on SQLite,
// on a file system in memory that loses what was not synced when the power fails
// (tests/support/crash_vfs.h).

#include <cstdint>
#include <filesystem>
#include <memory>

#include "coordinator/shell/job_resolver.h"
#include "coordinator/shell/storage_queries.h"
#include "storage/store.h"
#include "storage/store_reader.h"
#include "tests/simulation/disk/disk.h"
#include "tests/support/crash_vfs.h"

namespace loopfleet::simulation {

class StoreDisk final : public Disk {
 public:
  explicit StoreDisk(std::uint64_t seed);
  ~StoreDisk() override;

  Result<storage::Recovery> Open() override;
  void Close() override;
  void CrashNow(Crash how, std::span<const storage::Write> under_way, Dice& dice) override;
  Status Apply(std::span<const storage::Write> writes) override;
  void SetFull(bool full) override { files_.SetFull(full); }
  void FailNextApply(Dice& dice) override {
    files_.FailAt(files_.operations() + 1 + dice.Index(8), DiskFault::kIoError);
  }

  coordinator::ResolvedJob Resolve(JobSpec spec,
                                   const coordinator::StoredConditions& conditions) override;
  Result<std::optional<storage::StoredRequest>> FindRequest(const Uuid& client,
                                                            const Uuid& request) override;
  wire::CoordinatorMessage Outcomes(const wire::FetchOutcomes& fetch) override;
  wire::CoordinatorMessage Answer(const wire::ListBatches& list) override;
  wire::CoordinatorMessage Answer(const wire::ShowBatch& show) override;
  wire::CoordinatorMessage Answer(const wire::ExplainJob& explain) override;
  wire::CoordinatorMessage Answer(const wire::ListOutcomes& list) override;
  wire::CoordinatorMessage Job(JobId job, const std::optional<coordinator::LiveJob>& live) override;

  std::optional<storage::StoredJob> Find(JobId job) override;
  std::vector<storage::StoredBatch> AllBatches() override;

  CrashVfs& files() { return files_; }

 private:
  Status OpenAll();

  CrashVfs files_;
  std::filesystem::path directory_;  // for the lock file, which is a real one
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<storage::StoreReader> reader_;
  std::unique_ptr<coordinator::JobResolver> resolver_;
  std::unique_ptr<coordinator::StorageQueries> answers_;
};

}  // namespace loopfleet::simulation
