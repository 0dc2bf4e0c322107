#pragma once
// StoreDisk: a Disk over a storage::Store, with the event loop's own reader, resolver and queries.

#include <memory>

#include "coordinator/shell/job_resolver.h"
#include "coordinator/shell/storage_queries.h"
#include "storage/store.h"
#include "storage/store_reader.h"
#include "tests/simulation/disk/disk.h"

namespace loopfleet::simulation {

class StoreDisk : public Disk {
 public:
  ~StoreDisk() override;

  Result<storage::Recovery> Open() override;
  void Close() override;

  coordinator::ResolvedJob Resolve(JobSpec spec,
                                   const coordinator::StoredConditions& conditions) override;
  Result<std::optional<storage::StoredRequest>> FindRequest(const Uuid& client,
                                                            const Uuid& request) override;
  wire::CoordinatorMessage Outcomes(const wire::FetchOutcomes& fetch) override;
  wire::CoordinatorMessage Answer(const wire::ListBatches& list) override;
  wire::CoordinatorMessage Answer(const wire::ShowBatch& show) override;
  wire::CoordinatorMessage Answer(const wire::ExplainJob& explain) override;
  wire::CoordinatorMessage Answer(const wire::ListOutcomes& list) override;
  wire::CoordinatorMessage Answer(const wire::FindBest& find) override;
  wire::CoordinatorMessage Job(JobId job, const std::optional<coordinator::LiveJob>& live) override;

  std::optional<storage::StoredJob> Find(JobId job) override;
  std::vector<storage::StoredBatch> AllBatches() override;

 protected:
  virtual Result<std::unique_ptr<storage::Store>> OpenStore() = 0;
  storage::Store* store() { return store_.get(); }  // null: not open

 private:
  Status OpenAll();

  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<storage::StoreReader> reader_;
  std::unique_ptr<coordinator::JobResolver> resolver_;
  std::unique_ptr<coordinator::StorageQueries> answers_;
};

}  // namespace loopfleet::simulation
