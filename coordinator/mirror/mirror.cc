#include "coordinator/mirror/mirror.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "common/base/log.h"

namespace loopfleet::coordinator {
namespace {

// Whether an error comes from PostgreSQL, and may pass.
bool MayPass(ErrorKind kind) {
  return kind == ErrorKind::kUnavailable || kind == ErrorKind::kExists ||
         kind == ErrorKind::kInvalid;
}

WallTime OldestOf(const std::vector<Outcome>& outcomes) {
  return std::ranges::min(outcomes, {}, &Outcome::finished_at).finished_at;
}

}  // namespace

Mirror::Mirror(storage::StoreReader& reader, const Clock& clock, Options options,
               OnStatus on_status)
    : reader_(reader),
      clock_(clock),
      options_(std::move(options)),
      on_status_(std::move(on_status)) {}

Status Mirror::Run(const std::atomic<bool>& stop) {
  Nanos pause = kFirstPause;
  while (!stop) {
    Status done;
    bool more = true;
    if (archive_ == nullptr) done = Connect();
    if (done) {
      auto stepped = Step();
      done = stepped ? Status{} : std::unexpected(std::move(stepped).error());
      more = stepped.value_or(false);
    }
    if (!done) {
      LF_TRY_VOID(Survive(done.error()));
      Tell();
      Pause(pause, stop);
      pause = std::min<Nanos>(2 * pause, kLongestPause);
      continue;
    }
    pause = kFirstPause;
    Tell();
    if (more) continue;
    if (options_.once) return {};
    Pause(options_.poll_interval, stop);
  }
  return {};
}

Status Mirror::Connect() {
  LF_TRY(auto archive, storage::PostgresArchive::Open(options_.archive));
  LF_TRY(position_, archive->Position());
  archive_ = std::move(archive);
  was_connected_ = true;
  log::Info("mirror.connected last_batch={} open_batches={}", position_.outcomes.last,
            position_.outcomes.open.size());
  return {};
}

Result<bool> Mirror::Step() {
  auto next = following_ ? *std::exchange(following_, std::nullopt) : ReadAfter(position_.outcomes);
  if (!next) return Fail(ErrorKind::kSystem, std::move(next).error().message);  // of SQLite
  // After the outcomes: one that was in doubt from the start must not be seen without its doubt.
  const auto doubts = reader_.ListDoubts(position_.doubt, options_.most_rows);
  if (!doubts) return Fail(ErrorKind::kSystem, doubts.error().message);
  if (doubts->size() == options_.most_rows) {  // more may follow, and the outcomes wait for theirs
    *next = {.after = position_.outcomes, .waiting = next->waiting + next->outcomes.size()};
  }
  const storage::FeedStep& step = *next;
  const bool moves = step.after != position_.outcomes || !doubts->empty();
  if (moves) LF_TRY_VOID(Append(step, *doubts));
  position_.outcomes = step.after;
  if (!doubts->empty()) position_.doubt = doubts->back().number;
  status_.mirrored += step.outcomes.size();
  status_.waiting = step.waiting;
  if (step.waiting == 0) {
    status_.behind = Nanos{0};
  } else if (!step.outcomes.empty()) {
    status_.behind = clock_.WallNow() - OldestOf(step.outcomes);
  }
  status_.trouble.clear();
  return moves;
}

Result<storage::FeedStep> Mirror::ReadAfter(const storage::FeedPosition& position) {
  return storage::NextOutcomes(reader_, position, options_.most_rows);
}

Status Mirror::Append(const storage::FeedStep& step, const std::vector<storage::Doubt>& doubts) {
  std::future<Result<storage::FeedStep>> reading;
  if (step.waiting > 0) {
    reading = std::async(std::launch::async, [&] { return ReadAfter(step.after); });
  }
  Status appended = archive_->Append(position_.outcomes, step, doubts);
  if (!reading.valid()) return appended;
  auto following = reading.get();
  if (appended) following_ = std::move(following);
  return appended;
}

Status Mirror::Survive(const Error& error) {
  const bool was_refused = error.kind == ErrorKind::kInvalid && !was_connected_;
  if (!MayPass(error.kind) || was_refused || options_.once) return std::unexpected(error);
  if (std::exchange(status_.trouble, error.message) != error.message) {
    log::Warning("mirror.trouble reason={}", error.message);
  }
  if (was_connected_) LF_TRY_VOID(LookAtWhatWaits());
  archive_ = nullptr;  // the next one reads the position: a COMMIT without an answer may be there
  return {};
}

Status Mirror::LookAtWhatWaits() {
  auto next = storage::NextOutcomes(reader_, position_.outcomes, 1);
  if (!next) return Fail(ErrorKind::kSystem, std::move(next).error().message);  // of SQLite
  status_.waiting = next->waiting + next->outcomes.size();
  status_.behind = next->outcomes.empty() ? Nanos{0} : clock_.WallNow() - OldestOf(next->outcomes);
  return {};
}

void Mirror::Tell() {
  if (on_status_) on_status_(status_);
}

void Mirror::Pause(Nanos duration, const std::atomic<bool>& stop) {
  constexpr std::chrono::milliseconds kSlice{50};
  const Instant until = clock_.Now() + duration;
  while (!stop && clock_.Now() < until) {
    std::this_thread::sleep_for(std::min<Nanos>(kSlice, until - clock_.Now()));
  }
}

}  // namespace loopfleet::coordinator
