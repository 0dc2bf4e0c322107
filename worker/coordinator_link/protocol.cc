#include "worker/coordinator_link/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::worker {
namespace {

// Refusals that another hello cannot change.
bool IsForGood(FailureCode code) {
  return code == FailureCode::kVersionMismatch || code == FailureCode::kForbidden;
}

std::vector<LeaseId> IdsOf(const std::vector<wire::HeldLease>& leases) {
  std::vector<LeaseId> ids;
  for (const wire::HeldLease& lease : leases) ids.push_back(lease.lease);
  return ids;
}

}  // namespace

struct Protocol::Hearer {
  Protocol& self;
  Instant now;

  Status operator()(const wire::WorkerWelcome& welcome) const {
    log::Info("coordinator.welcome epoch={} heartbeat_ms={}", welcome.epoch, welcome.heartbeat_ms);
    self.heartbeat_interval_ = std::chrono::milliseconds(std::max(welcome.heartbeat_ms, 1U));
    self.next_heartbeat_ = now;
    self.ResendPending();
    self.is_registered_ = true;
    self.has_told_silence_ = false;
    const auto can = [&](std::string_view capability) {
      return std::ranges::find(welcome.capabilities, capability) != welcome.capabilities.end();
    };
    self.answers_code_lookups_ = can(wire::kCodeLookupCapability);
    self.sends_blobs_ = can(wire::kBlobCapability);
    self.keeps_blobs_ = can(wire::kPutBlobCapability);
    return {};
  }

  Status operator()(wire::Leases leases) const {
    std::size_t held = self.Held().size();
    for (wire::Lease& lease : leases.leases) {
      const LeaseId id = lease.lease;
      if (self.unstored_.contains(id)) continue;  // already finished, its report is unstored
      // The job was lost at least once before. A heartbeat records that it arrived here before it
      // runs, in case it crashes this worker, too.
      if (lease.attempt > 1) self.next_heartbeat_ = now;
      if (self.is_draining_) {
        // Granted before the coordinator knew of the drain.
        self.GiveBack({.lease = id, .job = lease.job});
      } else if (held >= wire::kMaxLeasesPerMessage || !self.runner_.Accept(std::move(lease))) {
        // Not among the held leases of the next heartbeat, so it will be granted elsewhere.
        log::Warning("lease.refused lease={} reason=\"more than the credit\"", id);
        continue;
      }
      ++held;
    }
    for (const wire::UnreadableLease& lease : leases.unreadable) self.Refuse(lease, now);
    return {};
  }

  Status operator()(const wire::ReportsStored& stored) const {
    for (const LeaseId lease : stored.leases) self.unstored_.erase(lease);
    return {};
  }

  Status operator()(const wire::Revoke& revoke) const {
    self.runner_.Drop(revoke.leases);
    for (const LeaseId lease : revoke.leases) {
      self.unstored_.erase(lease);
      std::erase_if(self.given_back_,
                    [&](const wire::HeldLease& held) { return held.lease == lease; });
    }
    return {};
  }

  Status operator()(const wire::GiveBack& back) const {
    const std::vector<wire::HeldLease> held = self.runner_.Held();
    self.KeepForReturn(held, self.runner_.GiveBack(back.leases));
    return {};
  }

  Status operator()(const wire::HeartbeatAnswer&) const { return {}; }

  Status operator()(const wire::HelloWanted&) const {
    if (!self.is_registered_) return {};  // its hello is on its way, or will be
    self.is_registered_ = false;
    self.next_hello_ = now;
    return {};
  }

  Status operator()(const wire::Refused& refused) const {
    const Failure& failure = refused.failure;
    if (failure.code == FailureCode::kMalformed && self.is_registered_) {
      log::Warning("coordinator.cannot_read message=\"{}\"", failure.message);
      self.OnUnreadable(failure.message);
      return {};
    }
    if (IsForGood(failure.code)) {
      return Fail(ErrorKind::kInvalid, fmt::format("the coordinator refuses this worker: {}: {}",
                                                   InfoOf(failure.code).name, failure.message));
    }
    log::Warning("coordinator.refused code={} message=\"{}\"", InfoOf(failure.code).name,
                 failure.message);
    if (failure.code == FailureCode::kUnauthenticated) return self.OnRevoked(now);
    self.is_registered_ = false;
    self.next_hello_ = now + std::max<Nanos>(self.options_.hello_interval,
                                             std::chrono::milliseconds(refused.retry_after_ms));
    return {};
  }

  Status operator()(wire::CodeLookupAnswer answer) const {
    self.runner_.Answer(std::move(answer));
    return {};
  }

  Status operator()(wire::BlobPiece piece) const {
    self.runner_.AnswerBlob(std::move(piece));
    return {};
  }

  Status operator()(wire::WorkerBlobHeld held) const {
    self.runner_.AnswerBlob(std::move(held));
    return {};
  }

  Status operator()(const wire::UnknownMember& unknown) const {
    log::Warning("coordinator.unknown_message member={}", unknown.member);
    return {};
  }
};

Protocol::Protocol(const Options& options, Line& line, LeaseRunner& runner, wire::WorkerHello hello)
    : options_(options), line_(line), runner_(runner), hello_(std::move(hello)) {
  hello_.capabilities.emplace_back(wire::kGiveBackCapability);
  hello_.capabilities.emplace_back(wire::kAnnounceCapability);
}

Status Protocol::Open(Instant now) { return Reconnect(now); }

void Protocol::ConnectedAgain(Instant now) {
  is_registered_ = false;
  next_hello_ = now;
  last_heard_ = now;
}

Status Protocol::Hear(wire::WorkerCommand command, Instant now) {
  last_heard_ = now;
  return std::visit(Hearer{*this, now}, std::move(command));
}

Result<Protocol::Phase> Protocol::Step(Instant now) {
  TakeFinished(now);
  LF_TRY_VOID(NoticeSilence(now));
  SendHelloIfDue(now);
  // No heartbeat goes just before the goodbye. Its answer, unread when the connection closes, would
  // reset the connection, and the coordinator would not hear the goodbye.
  if (is_draining_ && IsDrained(now)) {
    SayGoodbye();
    return Phase::kOver;
  }
  SendCodeLookups();
  SendBlobQuestions();
  SendHeartbeatIfDue(now);
  SendReturned();
  SendReports(now);
  return Phase::kGoesOn;
}

Instant Protocol::NextTimer() const {
  if (!is_registered_) return next_hello_;
  return next_linger_ == Instant{} ? next_heartbeat_ : std::min(next_heartbeat_, next_linger_);
}

// Opens a new connection before the new hello: the old one may hang unnoticed by both sides.
Status Protocol::Reconnect(Instant now) {
  LF_TRY_VOID(line_.Reconnect());
  ConnectedAgain(now);
  return {};
}

// The key is no longer authorized, and this worker's leases have gone to others. The worker keeps
// trying: a key may be authorized again at any time, and the key directory may be missing only for
// a moment.
Status Protocol::OnRevoked(Instant now) {
  const std::vector<LeaseId> lost = IdsOf(runner_.Held());
  log::Warning("worker.key_revoked leases={} reports={}", lost.size(), unstored_.size());
  runner_.Drop(lost);
  unstored_.clear();
  given_back_.clear();
  LF_TRY_VOID(Reconnect(now));
  next_hello_ = now + options_.hello_interval;
  return {};
}

// Reported like the failure of a job that ran, so that it is repeated until it is stored. Otherwise
// the coordinator would grant the same job here again.
void Protocol::Refuse(const wire::UnreadableLease& lease, Instant now) {
  if (unstored_.contains(lease.lease)) return;
  if (is_draining_) return GiveBack({.lease = lease.lease, .job = lease.job});
  log::Warning("lease.unreadable lease={} message=\"{}\"", lease.lease, lease.failure.message);
  Failure failure{
      .code = FailureCode::kVersionMismatch,
      .message = fmt::format("a worker of protocol {}.{} cannot read the job: {}",
                             hello_.version.major, hello_.version.minor, lease.failure.message),
      .action_index = lease.failure.action_index};
  unstored_[lease.lease] = {.report = {.lease = lease.lease,
                                       .job = lease.job,
                                       .evaluation = {.verdict = std::move(failure)}},
                            .finished_at = now,
                            .patience = options_.report_patience};
}

void Protocol::TakeFinished(Instant now) {
  for (wire::Report& report : runner_.TakeFinished()) {
    const LeaseId lease = report.lease;
    unstored_[lease] = {
        .report = std::move(report), .finished_at = now, .patience = options_.report_patience};
  }
}

void Protocol::GiveBack(const wire::HeldLease& lease) {
  given_back_.push_back(lease);
  has_told_returned_ = false;
}

// `held` is from before the runner dropped the leases.
void Protocol::KeepForReturn(const std::vector<wire::HeldLease>& held,
                             const std::vector<LeaseId>& dropped) {
  for (const wire::HeldLease& lease : held) {
    if (std::ranges::find(dropped, lease.lease) != dropped.end()) GiveBack(lease);
  }
}

// Sent after the heartbeat that tells of a drain. Before it, the coordinator would grant the same
// jobs here again.
void Protocol::SendReturned() {
  if (given_back_.empty() || has_told_returned_ || !is_registered_) return;
  if (is_draining_ && !has_told_drain_) return;
  has_told_returned_ = line_.Send(wire::Returned{.leases = IdsOf(given_back_)});
}

// Not lingering: a kernel waits for the answer.
void Protocol::SendCodeLookups() {
  for (const wire::CodeLookup& lookup : runner_.TakeCodeLookups()) {
    const bool sent = is_registered_ && answers_code_lookups_ && line_.Send(lookup);
    if (!sent) runner_.Answer({.lease = lookup.lease});
  }
}

void Protocol::SendBlobQuestions() {
  for (BlobQuestion& question : runner_.TakeBlobQuestions()) {
    if (!is_registered_) continue;  // asked again later
    if (auto* wanted = std::get_if<wire::BlobWanted>(&question)) {
      if (sends_blobs_) {
        line_.Send(std::move(*wanted));
      } else {
        runner_.AnswerBlob(wire::BlobPiece{.sha256 = std::move(wanted->sha256)});
      }
      continue;
    }
    auto& piece = std::get<wire::BlobPiece>(question);
    if (keeps_blobs_) {
      line_.Send(std::move(piece));
    } else {
      runner_.AnswerBlob(wire::WorkerBlobHeld{
          .sha256 = std::move(piece.sha256),
          .failure = Failure{.code = FailureCode::kUnsupported,
                             .message = "the coordinator is too old to keep observed values of "
                                        "this size: upgrade it"}});
    }
  }
}

// Whether finished reports should wait briefly for those about to finish: one message costs the
// coordinator about as much as twenty reports.
bool Protocol::Lingers(Instant now) const {
  std::size_t fresh = 0;
  Instant oldest = now;
  for (const auto& [lease, unstored] : unstored_) {
    if (unstored.sent_at) continue;
    ++fresh;
    oldest = std::min(oldest, unstored.finished_at);
  }
  if (fresh == 0 || fresh >= options_.max_reports_per_message) return false;
  return now - oldest < options_.linger && !runner_.Held().empty();
}

void Protocol::ResendPending() {
  alone_.reset();
  for (auto& [lease, unstored] : unstored_) {
    unstored.sent_at.reset();
    unstored.patience = options_.report_patience;
  }
}

void Protocol::SendReports(Instant now) {
  if (unstored_.empty()) is_cautious_ = false;
  if (alone_ && !unstored_.contains(*alone_)) alone_.reset();
  next_linger_ = {};
  if (!is_registered_) return;
  if (!is_cautious_ && Lingers(now)) {
    next_linger_ = now + std::chrono::milliseconds(1);
    return;
  }
  const std::size_t most = is_cautious_ ? 1 : options_.max_reports_per_message;
  auto next = unstored_.begin();
  while (next != unstored_.end()) {
    if (is_cautious_ && alone_) next = unstored_.find(*alone_);
    wire::Reports reports;
    std::vector<Unstored*> chosen;
    std::size_t bytes = wire::kMessageOverheadBytes;
    for (; next != unstored_.end() && chosen.size() < most; ++next) {
      Unstored& unstored = next->second;
      if (unstored.sent_at && now < *unstored.sent_at + unstored.patience) {
        if (is_cautious_ && alone_) return;
        continue;
      }
      bytes += wire::EncodedSize(unstored.report.evaluation);
      if (bytes > wire::kMaxMessageBytes && !chosen.empty()) break;
      chosen.push_back(&unstored);
      reports.reports.push_back(unstored.report);
    }
    if (chosen.empty() || !line_.Send(reports)) return;  // sent when the connection takes more
    for (Unstored* unstored : chosen) {
      if (unstored->sent_at) {
        unstored->patience =
            std::min<Nanos>(2 * unstored->patience, options_.longest_report_patience);
      }
      unstored->sent_at = now;
    }
    if (is_cautious_) {
      alone_ = chosen.front()->report.lease;
      return;
    }
  }
}

// A report that cannot be read would otherwise be sent again without end and hold its job forever.
void Protocol::OnUnreadable(const std::string& why) {
  const auto blamed = is_cautious_ && alone_ ? unstored_.find(*alone_) : unstored_.end();
  is_cautious_ = true;
  if (blamed != unstored_.end() && blamed->second.is_replaced) {
    unstored_.erase(blamed);  // no longer held, so the job goes to others
  } else if (blamed != unstored_.end()) {
    blamed->second.is_replaced = true;
    blamed->second.report.evaluation = Evaluation{
        .verdict = Failure{
            .code = FailureCode::kWorkerCrashed,
            .message = fmt::format("the coordinator cannot read the worker's report: {}", why)}};
  }
  ResendPending();
}

void Protocol::SendHelloIfDue(Instant now) {
  if (is_registered_ || now < next_hello_) return;
  hello_.held = Held();
  line_.Send(hello_);
  has_said_hello_ = true;
  next_hello_ = now + options_.hello_interval;
}

void Protocol::SendHeartbeatIfDue(Instant now) {
  if (!is_registered_ || now < next_heartbeat_) return;
  wire::Heartbeat heartbeat;
  heartbeat.drain = is_draining_ ? wire::DrainState::kDraining : wire::DrainState::kServing;
  for (const wire::HeldLease& held : Held()) heartbeat.held.push_back(held.lease);
  const CanaryHealth canaries = options_.canaries();
  heartbeat.canary_ratio = canaries.ratio;
  if (canaries.drifting) heartbeat.canary = wire::CanaryState::kDrifting;
  heartbeat.drifting = canaries.drifting;
  if (canaries.steady_until) {
    heartbeat.steady_since_ms = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now - *canaries.steady_until)
            .count());
  }
  has_told_drain_ = line_.Send(heartbeat) && is_draining_;
  next_heartbeat_ = now + heartbeat_interval_;
  has_told_returned_ = false;  // it lists these leases, too
}

Status Protocol::NoticeSilence(Instant now) {
  const Nanos patience = options_.silent_intervals *
                         (is_registered_ ? heartbeat_interval_ : Nanos(options_.hello_interval));
  if (now - last_heard_ <= patience) return {};
  if (!has_told_silence_) {  // once, until it answers
    has_told_silence_ = true;
    log::Warning("coordinator.silent ms={}",
                 std::chrono::duration_cast<std::chrono::milliseconds>(now - last_heard_).count());
  }
  return Reconnect(now);
}

std::vector<wire::HeldLease> Protocol::Held() const {
  std::vector<wire::HeldLease> held = runner_.Held();
  for (const auto& [lease, unstored] : unstored_) {
    held.push_back({.lease = lease, .job = unstored.report.job});
  }
  // Listed until the coordinator knows. A lease that is missing counts as a lost attempt.
  held.insert(held.end(), given_back_.begin(), given_back_.end());
  return held;
}

void Protocol::StartDrain(Instant now) {
  is_draining_ = true;
  const std::vector<wire::HeldLease> held = runner_.Held();
  KeepForReturn(held, runner_.DropUnstarted());
  next_heartbeat_ = now;  // tells the coordinator at once to grant no more
  log::Info("worker.draining running={} returned={}", runner_.Held().size(), given_back_.size());
}

bool Protocol::IsDrained(Instant now) {
  if (!runner_.Held().empty()) return false;
  if (unstored_.empty()) return true;
  if (!idle_since_) idle_since_ = now;
  if (now - *idle_since_ < options_.drain_limit) return false;
  log::Warning("worker.reports_lost count={} reason=\"not stored within the drain limit\"",
               unstored_.size());
  return true;
}

void Protocol::SayGoodbye() {
  // Also while its hello is not answered yet: the coordinator may know the worker by now.
  if (has_said_hello_) line_.Send(wire::Goodbye{.returned = IdsOf(given_back_)});
  is_registered_ = false;
}

}  // namespace loopfleet::worker
