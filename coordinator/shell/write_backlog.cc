#include "coordinator/shell/write_backlog.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {
namespace {

std::size_t RowsOf(const Persist& persist) {
  std::size_t rows = 0;
  for (const storage::Write& write : persist.writes) {
    if (const auto* accepted = std::get_if<storage::JobsAccepted>(&write)) {
      rows += 1 + accepted->jobs.size();
    } else if (const auto* answered = std::get_if<storage::JobsAnswered>(&write)) {
      rows += answered->jobs.size();
    } else {
      ++rows;
    }
  }
  return rows;
}

}  // namespace

std::span<const storage::Write> WriteBacklog::StartGroup() {
  LF_CHECK(group_size_ == 0, "a group of {} is under way", group_size_);
  group_rows_ = 0;
  rows_.clear();
  while (group_size_ < waiting_.size() && (group_size_ == 0 || group_rows_ < kMaxRowsPerCommit)) {
    group_rows_ += rows_.emplace_back(RowsOf(waiting_[group_size_++]));
  }
  if (group_size_ == 1) return waiting_.front().writes;
  for (Persist& persist : std::span(waiting_).first(group_size_)) {
    std::ranges::move(persist.writes, std::back_inserter(group_));
  }
  return group_;
}

std::vector<Event> WriteBacklog::Applied() {
  std::vector<Event> persisted;
  std::size_t rows = 0;  // of the last event
  for (std::size_t i = 0; i < group_size_; ++i) {
    rows += rows_[i];
    if (persisted.empty() || rows > kMaxRowsPerEvent) {
      persisted.emplace_back(Persisted{});
      rows = rows_[i];
    }
    std::get<Persisted>(persisted.back()).tokens.push_back(waiting_[i].token);
  }
  waiting_.erase(waiting_.begin(),
                 waiting_.begin() + static_cast<std::ptrdiff_t>(std::exchange(group_size_, 0)));
  group_.clear();
  return persisted;
}

std::vector<Event> WriteBacklog::NoRoom(const Error& why) {
  if (group_size_ > 1) {  // put back, to be written later
    auto next = group_.begin();
    for (Persist& persist : std::span(waiting_).first(group_size_)) {
      for (storage::Write& write : persist.writes) write = std::move(*next++);
    }
  }
  group_size_ = 0;
  group_.clear();
  const Failure failure{
      .code = why.kind == ErrorKind::kUnavailable ? FailureCode::kBusy : FailureCode::kStorageFull,
      .message = why.message};
  std::vector<Event> refused;
  std::erase_if(waiting_, [&](const Persist& persist) {
    if (persist.when_full != WhenFull::kRefuse) return false;
    refused.push_back(PersistRefused{.token = persist.token, .failure = failure});
    return true;
  });
  return refused;
}

}  // namespace loopfleet::coordinator
