#include "coordinator/shell/retention.h"

#include "common/base/log.h"

namespace loopfleet::coordinator {

bool Retention::IsDueWhileBusy() const {
  const Instant now = clock_.Now();
  return is_on() && now >= due_ && now >= last_step_ + kBusyPause;
}

void Retention::Begin() {
  const WallTime now = clock_.WallNow();
  if (keep_.samples.count() > 0) {
    thinning_.emplace(
        storage::ThinningRule{.measured_before = now - keep_.samples,
                              .keep_every = 0,
                              .asked_by = "loopfleet-coordinator --keep-samples-days"},
        storage::Thinning::Scope::kNew);
  }
  if (keep_.batches.count() > 0 && MayDeleteBatches()) {
    pruning_.emplace(storage::PruningRule{.finished_before = now - keep_.batches,
                                          .asked_by = "loopfleet-coordinator --keep-batches-days"});
  }
}

Status Retention::Step() {
  const bool deletes =
      !thinning_ && pruning_ && pruning_->progress().phase < storage::Pruning::Phase::kShrinking;
  if (deletes && !MayDeleteBatches()) {
    Report(*pruning_);
    pruning_.reset();  // a later pass goes on where this one ends
  } else if (!thinning_ && !pruning_) {
    Begin();
  }
  if (!thinning_ && !pruning_) {
    due_ = clock_.Now() + kHeldPause;
    return {};
  }
  Status done = thinning_ ? store_.Thin(*thinning_, clock_.WallNow())
                          : store_.Prune(*pruning_, clock_.WallNow());
  last_step_ = clock_.Now();
  due_ = last_step_;
  if (!done) {
    due_ += kPassPause;  // the cause, usually a full disk, is reported by ordinary writes
    // A page that cannot be read stays so: that pass ends here, and the other one goes on.
    if (done.error().kind == ErrorKind::kCorrupt) {
      thinning_ ? thinning_.reset() : pruning_.reset();
    }
    return done;
  }
  if (thinning_ && thinning_->is_over()) {
    Report(*thinning_);
    thinning_.reset();
  }
  if (pruning_ && pruning_->is_over()) {
    Report(*pruning_);
    pruning_.reset();
  }
  if (!thinning_ && !pruning_) due_ += kPassPause;
  return {};
}

void Retention::Report(const storage::Thinning& pass) {
  const storage::ThinningCount& count = pass.count();
  if (count.results > 0) {
    log::Info("storage.samples_thinned retention={} results={} samples={} bytes={}", pass.id(),
              count.results, count.samples, count.bytes);
  }
  if (count.damaged > 0) log::Warning("storage.samples_damaged results={}", count.damaged);
}

void Retention::Report(const storage::Pruning& pass) {
  const storage::PruningCount& count = pass.count();
  if (pass.id() != 0) {
    log::Info("storage.batches_pruned pruning={} batches={} jobs={} known_failures={}", pass.id(),
              count.batches, count.jobs, count.known_failures);
  }
  if (count.damaged > 0) log::Warning("storage.batches_damaged batches={}", count.damaged);
}

}  // namespace loopfleet::coordinator
