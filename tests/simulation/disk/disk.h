#pragma once
// Disk: what the coordinator's storage looks like from the event loop and from the storage thread:
// a model, or the real storage on a file system that fails.

#include <optional>
#include <span>
#include <vector>

#include "common/base/result.h"
#include "common/wire/message.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/shell/job_resolver.h"
#include "storage/record.h"
#include "tests/simulation/dice.h"

namespace loopfleet::simulation {

class Disk {
 public:
  virtual ~Disk() = default;

  // ---- one life of the coordinator: opened, used, and closed or crashed
  virtual Result<storage::Recovery> Open() = 0;
  virtual void Close() = 0;
  enum class Crash : std::uint8_t { kProcess, kPower };
  // `under_way`: what was being applied at this moment. Afterwards it is there whole, or not at
  // all.
  virtual void CrashNow(Crash how, std::span<const storage::Write> under_way, Dice& dice) = 0;
  // Whole and durable when it returns, or not at all.
  virtual Status Apply(std::span<const storage::Write> writes) = 0;
  virtual void SetFull(bool full) = 0;
  virtual void FailNextApply(Dice& dice) = 0;  // EIO

  // ---- what the event loop reads
  virtual coordinator::ResolvedJob Resolve(JobSpec spec,
                                           const coordinator::StoredConditions& conditions) = 0;
  virtual Result<std::optional<storage::StoredRequest>> FindRequest(const Uuid& client,
                                                                    const Uuid& request) = 0;
  virtual wire::CoordinatorMessage Outcomes(const wire::FetchOutcomes& fetch) = 0;
  virtual wire::CoordinatorMessage Answer(const wire::ListBatches& list) = 0;
  virtual wire::CoordinatorMessage Answer(const wire::ShowBatch& show) = 0;
  virtual wire::CoordinatorMessage Answer(const wire::ExplainJob& explain) = 0;
  virtual wire::CoordinatorMessage Answer(const wire::ListOutcomes& list) = 0;
  virtual wire::CoordinatorMessage Answer(const wire::FindBest& find) = 0;
  virtual wire::CoordinatorMessage Job(JobId job,
                                       const std::optional<coordinator::LiveJob>& live) = 0;

  // ---- what an outsider finds in the database; only while it is open
  virtual std::optional<storage::StoredJob> Find(JobId job) = 0;
  virtual std::vector<storage::StoredBatch> AllBatches() = 0;
};

}  // namespace loopfleet::simulation
