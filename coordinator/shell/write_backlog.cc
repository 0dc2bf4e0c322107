#include "coordinator/shell/write_backlog.h"

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

storage::WriteGroup WriteBacklog::StartGroup() {
  LF_CHECK(group_.empty(), "a group of {} is under way", group_.size());
  group_rows_ = 0;
  rows_.clear();
  for (const Persist& persist : waiting_) {
    if (group_rows_ >= kMaxRowsPerCommit) break;
    group_rows_ += rows_.emplace_back(RowsOf(persist));
    group_.emplace_back(persist.writes);
  }
  return group_;
}

WriteBacklog::Written WriteBacklog::Applied() {
  std::vector<Event> persisted;
  std::size_t rows = 0;  // of the last event
  for (std::size_t i = 0; i < group_.size(); ++i) {
    rows += rows_[i];
    if (persisted.empty() || rows > kMaxRowsPerEvent) {
      persisted.emplace_back(Persisted{});
      rows = rows_[i];
    }
    std::get<Persisted>(persisted.back()).tokens.push_back(waiting_[i].token);
  }
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(group_.size());
  std::vector<Persist> group(std::move_iterator(waiting_.begin()), std::move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  group_.clear();
  return {.persisted = std::move(persisted), .group = std::move(group)};
}

std::vector<Event> WriteBacklog::NoRoom(const Error& why) {
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
