#include "coordinator/shell/sample_retention.h"

#include "common/base/log.h"

namespace loopfleet::coordinator {

bool SampleRetention::IsDueWhileBusy() const {
  const Instant now = clock_.Now();
  return is_on() && now >= due_ && now >= last_step_ + kBusyPause;
}

Status SampleRetention::Step() {
  if (!pass_) {
    pass_.emplace(storage::ThinningRule{.measured_before = clock_.WallNow() - keep_,
                                        .keep_every = 0,
                                        .asked_by = "loopfleet-coordinator --keep-samples-days"},
                  storage::Thinning::Scope::kNew);
  }
  Status done = store_.Thin(*pass_, clock_.WallNow());
  last_step_ = clock_.Now();
  due_ = last_step_;
  if (!done) {
    due_ += kPassPause;  // the cause, usually a full disk, is reported by ordinary writes
    return done;
  }
  if (!pass_->is_over()) return {};
  const storage::ThinningCount& count = pass_->count();
  if (count.results > 0) {
    log::Info("storage.samples_thinned retention={} results={} samples={} bytes={}", pass_->id(),
              count.results, count.samples, count.bytes);
  }
  if (count.damaged > 0) log::Warning("storage.samples_damaged results={}", count.damaged);
  pass_.reset();
  due_ += kPassPause;
  return {};
}

}  // namespace loopfleet::coordinator
