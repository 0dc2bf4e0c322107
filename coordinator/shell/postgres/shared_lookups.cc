#include "coordinator/shell/postgres/shared_lookups.h"

#include <utility>

#include "common/base/log.h"

namespace loopfleet::coordinator {

SharedLookups::SharedLookups(Options options, const Clock& clock, wire::Wakeup& wakeup)
    : options_(std::move(options)), clock_(clock), wakeup_(wakeup), thread_([this] { Run(); }) {}

SharedLookups::~SharedLookups() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  something_to_do_.notify_one();
  thread_.join();
}

void SharedLookups::Ask(std::uint64_t question, std::vector<storage::ResultKey> keys) {
  {
    const std::lock_guard lock(mutex_);
    questions_.push_back({.number = question, .keys = std::move(keys)});
  }
  something_to_do_.notify_one();
}

std::vector<SharedLookups::Answer> SharedLookups::TakeAnswers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void SharedLookups::Run() {
  while (true) {
    auto question = Next();
    {
      const std::lock_guard lock(mutex_);
      if (is_stopping_) return;
    }
    if (const Status looked = LookForOthers(); !looked) Fail(looked.error());
    if (!question) continue;
    auto found = Find(*question);
    if (!found) Fail(found.error());
    {
      const std::lock_guard lock(mutex_);
      answers_.push_back(
          {.question = question->number,
           .found = std::move(found).value_or(std::vector<storage::StoredAnswer>())});
    }
    wakeup_.Signal();
  }
}

std::optional<SharedLookups::Question> SharedLookups::Next() {
  std::unique_lock lock(mutex_);
  constexpr std::chrono::milliseconds kAWhile{500};
  something_to_do_.wait_for(lock, kAWhile, [&] { return is_stopping_ || !questions_.empty(); });
  if (questions_.empty()) return std::nullopt;
  Question next = std::move(questions_.front());
  questions_.pop_front();
  return next;
}

Status SharedLookups::LookForOthers() {
  const Instant now = clock_.Now();
  if (now < next_look_) return {};
  next_look_ = now + kLookForOthers;
  if (results_ == nullptr) {
    LF_TRY(results_, storage::SharedResults::Open(options_.results, options_.incarnation));
  }
  LF_TRY(const bool has_others, results_->HasOthers());
  is_open_ = has_others;
  logged_.clear();
  return {};
}

Result<std::vector<storage::StoredAnswer>> SharedLookups::Find(const Question& question) {
  if (results_ == nullptr) {
    return loopfleet::Fail(ErrorKind::kUnavailable, "PostgreSQL is not connected");
  }
  return results_->Find(question.keys);
}

// The mirror tells operators of PostgreSQL's troubles (mirror_process.h); here they go to the log.
void SharedLookups::Fail(const Error& error) {
  is_open_ = false;
  results_ = nullptr;
  next_look_ = clock_.Now() + kRetryPause;
  if (std::exchange(logged_, error.message) == error.message) return;
  log::Warning("shared_results.trouble reason={}", error.message);
}

}  // namespace loopfleet::coordinator
