#include "storage/sqlite/unfinished_rows.h"

#include <algorithm>
#include <utility>

namespace loopfleet::storage {

Status UnfinishedRows::Read(std::size_t max, std::vector<UnfinishedJob>& jobs,
                            std::vector<JobId>& damaged) {
  const std::size_t end = jobs.size() + damaged.size() + max;
  std::size_t examined = 0;
  while (!at_end() && jobs.size() + damaged.size() < end && examined < kMaxExamined) {
    const StoredBatch& batch = batches_[batch_];
    if (next_ < batch.job_count) {
      if (next_ == window_ + finished_.size()) {
        LF_TRY_VOID(ReadWindowOutcomes(batch));
        examined += finished_.size();
      }
      const std::size_t room = end - jobs.size() - damaged.size();
      LF_TRY_VOID(ReadWindow(batch.batch, room, jobs, damaged));
      continue;
    }
    ++batch_;
    next_ = window_ = 0;
    finished_.clear();
  }
  return {};
}

bool UnfinishedRows::IsAhead(JobId job) const {
  if (at_end()) return false;
  const BatchId reading = batches_[batch_].batch;
  return job.batch == reading ? job.index >= next_ : job.batch > reading;
}

Result<std::optional<UnfinishedJob>> UnfinishedRows::ReadOutOfOrder(JobId id) {
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

Status UnfinishedRows::ReadWindowOutcomes(const StoredBatch& batch) {
  const std::uint32_t count = std::min(kWindow, batch.job_count - next_);
  window_ = next_;
  if (batch.finished == 0) {
    finished_.assign(count, false);
  } else {
    LF_TRY(finished_, outcomes_.FinishedJobs({.batch = batch.batch, .index = next_}, count));
  }
  return {};
}

void UnfinishedRows::SkipFinished() {
  while (next_ < window_ + finished_.size() && finished_[next_ - window_]) ++next_;
}

Status UnfinishedRows::ReadOneByOne(BatchId batch, std::size_t max,
                                    std::vector<UnfinishedJob>& jobs, std::vector<JobId>& damaged) {
  const auto end = static_cast<std::uint32_t>(window_ + finished_.size());
  for (std::size_t room = max; next_ < end && room > 0; ++next_) {
    if (finished_[next_ - window_]) continue;
    const JobId id{.batch = batch, .index = next_};
    auto job = jobs_.FindUnfinished(id);
    if (!job && job.error().kind != ErrorKind::kCorrupt) {
      return std::unexpected(std::move(job).error());
    }
    if (job && *job) {
      jobs.push_back(**std::move(job));
    } else {
      damaged.push_back(id);
    }
    --room;
  }
  return {};
}

Status UnfinishedRows::ReadWindow(BatchId batch, std::size_t max, std::vector<UnfinishedJob>& jobs,
                                  std::vector<JobId>& damaged) {
  const auto end = static_cast<std::uint32_t>(window_ + finished_.size());
  std::size_t room = max;
  // Jobs up to `index` have no row: they are damaged unless they have finished.
  const auto skip_to = [&](std::uint32_t index) {
    for (; next_ < index; ++next_) {
      if (finished_[next_ - window_]) continue;
      damaged.push_back({batch, next_});
      if (room > 0) --room;
    }
  };
  SkipFinished();
  while (next_ < end && room > 0) {
    Status failed;
    const std::uint32_t first = next_;
    bool is_over = true;  // no row is left in the window
    // The query ends at each run of finished jobs, so that their rows are not read.
    const Status read = jobs_.ForEach(batch, first, [&](JobId id, Result<UnfinishedJob> job) {
      if (id.index < next_) return JobTable::Go::kOn;  // already passed
      is_over = id.index >= end;                       // of the next window, or accepted since
      if (is_over) return JobTable::Go::kStop;
      skip_to(id.index);
      if (room == 0) return JobTable::Go::kStop;
      if (!finished_[next_ - window_]) {
        --room;
        if (job) {
          jobs.push_back(*std::move(job));
        } else if (job.error().kind == ErrorKind::kCorrupt) {
          damaged.push_back(id);
        } else {
          failed = std::unexpected(std::move(job).error());
          return JobTable::Go::kStop;
        }
      }
      ++next_;
      const std::uint32_t follows = next_;
      SkipFinished();
      const bool goes_on = next_ == follows && next_ < end && room > 0;
      return goes_on ? JobTable::Go::kOn : JobTable::Go::kStop;
    });
    LF_TRY_VOID(std::move(failed));
    if (!read) {
      if (read.error().kind != ErrorKind::kCorrupt) return read;
      return ReadOneByOne(batch, room, jobs, damaged);
    }
    if (is_over) skip_to(end);
  }
  return {};
}

}  // namespace loopfleet::storage
