#include "storage/unfinished_jobs.h"

#include <algorithm>
#include <utility>

namespace loopfleet::storage {

Status UnfinishedJobs::Read(std::size_t max, std::vector<UnfinishedJob>& jobs,
                            std::vector<JobId>& damaged) {
  const std::size_t end = jobs.size() + damaged.size() + max;
  while (!at_end() && jobs.size() + damaged.size() < end) {
    const StoredBatch& batch = batches_[batch_];
    LF_TRY_VOID(ReadBatch(batch, end - jobs.size() - damaged.size(), jobs, damaged));
    if (next_ < batch.job_count) continue;
    ++batch_;
    next_ = 0;
    finished_.clear();
  }
  return {};
}

bool UnfinishedJobs::IsAhead(JobId job) const {
  if (at_end()) return false;
  const BatchId reading = batches_[batch_].batch;
  return job.batch == reading ? job.index >= next_ : job.batch > reading;
}

Result<std::optional<UnfinishedJob>> UnfinishedJobs::ReadEarly(JobId id) {
  const auto batch = std::ranges::lower_bound(batches_, id.batch, {}, &StoredBatch::batch);
  if (!IsAhead(id) || batch == batches_.end() || batch->batch != id.batch) return std::nullopt;
  if (id.index >= batch->job_count) return std::nullopt;
  LF_TRY(const auto outcome, outcomes_.Find(id));
  if (outcome) return std::nullopt;
  Result<std::optional<UnfinishedJob>> found = std::nullopt;
  LF_TRY_VOID(jobs_.ForEach(id.batch, id.index, [&](JobId at, Result<UnfinishedJob> job) {
    if (at != id) return JobTable::Go::kStop;
    if (job) {
      found = *std::move(job);
    } else {
      found = std::unexpected(std::move(job).error());
    }
    return JobTable::Go::kStop;
  }));
  return found;
}

Status UnfinishedJobs::ReadBatch(const StoredBatch& batch, std::size_t max,
                                 std::vector<UnfinishedJob>& jobs, std::vector<JobId>& damaged) {
  if (finished_.empty()) {
    finished_.resize(batch.job_count);
    if (batch.finished > 0) {
      LF_TRY(finished_, outcomes_.FinishedJobs(batch.batch, batch.job_count));
    }
  }
  std::size_t room = max;
  // Jobs whose rows are gone, up to `end`.
  const auto skip_to = [&](std::uint32_t end) {
    for (; next_ < end; ++next_) {
      if (finished_[next_]) continue;
      damaged.push_back({batch.batch, next_});
      if (room > 0) --room;
    }
  };
  Status failed;
  bool is_cut = false;
  LF_TRY_VOID(jobs_.ForEach(batch.batch, next_, [&](JobId id, Result<UnfinishedJob> job) {
    if (id.index >= batch.job_count) return JobTable::Go::kStop;  // accepted since
    if (id.index < next_) return JobTable::Go::kOn;               // not a job of ours
    if (room == 0) {
      is_cut = true;
      return JobTable::Go::kStop;
    }
    skip_to(id.index);
    ++next_;
    if (finished_[id.index]) return JobTable::Go::kOn;
    if (room > 0) --room;
    if (job) {
      jobs.push_back(*std::move(job));
    } else if (job.error().kind == ErrorKind::kCorrupt) {
      damaged.push_back(id);
    } else {
      failed = std::unexpected(std::move(job).error());
      return JobTable::Go::kStop;
    }
    return JobTable::Go::kOn;
  }));
  if (failed && !is_cut) skip_to(batch.job_count);
  return failed;
}

}  // namespace loopfleet::storage
