#pragma once
// ModelDisk: what a database would hold, in maps. It refuses what the real storage refuses: a
// second outcome, a gap in the indices or sequences, a request twice.

#include <map>
#include <utility>

#include "coordinator/core/tables/client_table.h"
#include "tests/simulation/disk/disk.h"

namespace loopfleet::simulation {

class ModelDisk final : public Disk {
 public:
  Result<storage::Recovery> Open() override;
  void Close() override {}
  void CrashNow(Crash how, std::span<const storage::Write> under_way, Dice& dice) override;
  Status Apply(std::span<const storage::Write> writes) override;
  void SetFull(bool full) override { is_full_ = full; }
  void FailNextApply(Dice&) override { fails_next_ = true; }

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

 private:
  using Known = std::map<SubjectKey, std::vector<JobId>>;  // latest last
  storage::StoredAnswer FindIn(const Known& known, const JobSpec& spec, const ResolvedTask& measure,
                               const coordinator::StoredConditions& conditions) const;
  struct State {
    std::uint64_t epoch = 0;
    std::map<BatchId, storage::StoredBatch> batches;
    std::map<coordinator::RequestKey, storage::StoredRequest> requests;
    std::map<JobId, JobSpec> jobs;
    std::map<std::string, storage::WorkersDrained> drains;
    std::map<JobId, WallTime> accepted_at;  // of those with a deadline
    std::map<JobId, Outcome> outcomes;
    std::map<std::pair<BatchId, std::uint64_t>, JobId> sequences;
    Known measured;
    Known failed;
  };
  struct Writer;  // one overload for each kind of write

  State state_;
  bool is_full_ = false;
  bool fails_next_ = false;
};

}  // namespace loopfleet::simulation
