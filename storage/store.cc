#include "storage/store.h"

#include "storage/unfinished_jobs.h"

namespace loopfleet::storage {

Result<Recovery> Store::Recover() {
  LF_TRY(Recovery recovery, RecoverBatches());
  std::size_t count = 0;
  for (const StoredBatch& batch : recovery.unfinished) count += batch.job_count - batch.finished;
  recovery.jobs.reserve(count);
  LF_TRY(const auto reader, OpenReader());
  const auto all = reader->ReadUnfinished(recovery.unfinished);
  while (!all->at_end()) {
    LF_TRY_VOID(all->Read(count + 1, recovery.jobs, recovery.damaged));
  }
  return recovery;
}

}  // namespace loopfleet::storage
