#include "worker/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/wire/codec.h"

namespace loopfleet::worker {
namespace {

// Refusals that saying hello again cannot change.
bool IsForGood(FailureCode code) {
  return code == FailureCode::kVersionMismatch || code == FailureCode::kUnauthenticated ||
         code == FailureCode::kForbidden;
}

}  // namespace

Session::Session(const Options& options, const Parts& parts, wire::WorkerHello hello)
    : options_(options), parts_(parts), hello_(std::move(hello)) {}

Session::~Session() = default;

Status Session::Run() {
  LF_TRY_VOID(Connect());
  for (;;) {
    LF_TRY_VOID(parts_.check_children());
    if (drain_requested_ && !is_draining_) StartDrain();
    LF_TRY_VOID(ReceiveAll());
    TakeFinished();
    const Instant now = parts_.clock.Now();
    parts_.pulse.Beat();
    LF_TRY_VOID(NoticeSilence(now));
    SendHelloIfDue(now);
    SendHeartbeatIfDue(now);
    SendReports();
    if (is_draining_ && IsDrained(now)) {
      SayGoodbye();
      return {};
    }
    poller_->Wait(TimeToNextTimer(now));
  }
}

void Session::RequestDrain() {
  drain_requested_ = true;
  parts_.wakeup.Signal();
}

// A new connection as well as a new hello: the old one may hang without either side knowing.
Status Session::Connect() {
  poller_.reset();
  dealer_.reset();
  LF_TRY(dealer_, wire::Dealer::Connect(parts_.context, options_.coordinator));
  poller_.emplace();
  poller_->Add(*dealer_);
  poller_->Add(parts_.wakeup);
  SetRegistered(false);
  next_hello_ = parts_.clock.Now();
  last_heard_ = next_hello_;
  return {};
}

void Session::SetRegistered(bool registered) {
  if (registered && !is_registered_) parts_.metrics.Connected();
  if (!registered && is_registered_) parts_.metrics.Disconnected();
  is_registered_ = registered;
}

bool Session::Send(const wire::WorkerMessage& message) {
  return dealer_->Send(wire::Encode(message)) == wire::SendResult::kSent;
}

Status Session::ReceiveAll() {
  while (const std::optional<std::string> frame = dealer_->Receive()) {
    std::expected<wire::WorkerCommand, Failure> command = wire::DecodeWorkerCommand(*frame);
    if (!command) {
      log::Warning("coordinator.unreadable message=\"{}\"", command.error().message);
      continue;
    }
    last_heard_ = parts_.clock.Now();
    LF_TRY_VOID(
        std::visit([&](auto&& body) { return Handle(std::move(body)); }, *std::move(command)));
  }
  return {};
}

Status Session::Handle(wire::WorkerWelcome welcome) {
  log::Info("coordinator.welcome epoch={} heartbeat_ms={}", welcome.epoch, welcome.heartbeat_ms);
  heartbeat_interval_ = std::chrono::milliseconds(std::max(welcome.heartbeat_ms, 1U));
  next_heartbeat_ = parts_.clock.Now();
  for (auto& [lease, unstored] : unstored_) unstored.is_sent = false;
  if (welcome.reference_mhz > 0) parts_.set_reference_clock(welcome.reference_mhz);
  SetRegistered(true);
  return {};
}

Status Session::Handle(wire::Leases leases) {
  for (wire::Lease& lease : leases.leases) {
    const LeaseId id = lease.lease;
    if (unstored_.contains(id)) continue;  // it is answered already
    if (is_draining_) {
      returned_.push_back(id);  // it crossed the heartbeat that said so
    } else if (!parts_.runner.Accept(std::move(lease))) {
      // Not among the held leases of the next heartbeat, so it will be granted elsewhere.
      log::Warning("lease.refused lease={} reason=\"more than the credit\"", id);
    }
  }
  return {};
}

Status Session::Handle(const wire::ReportsStored& stored) {
  for (const LeaseId lease : stored.leases) unstored_.erase(lease);
  return {};
}

Status Session::Handle(const wire::Revoke& revoke) {
  parts_.runner.Drop(revoke.leases);
  for (const LeaseId lease : revoke.leases) unstored_.erase(lease);
  return {};
}

Status Session::Handle(const wire::HeartbeatAnswer&) { return {}; }

Status Session::Handle(const wire::HelloWanted&) {
  SetRegistered(false);
  next_hello_ = parts_.clock.Now();
  return {};
}

Status Session::Handle(const wire::Refused& refused) {
  const Failure& failure = refused.failure;
  if (IsForGood(failure.code)) {
    return Fail(ErrorKind::kInvalid, fmt::format("the coordinator refuses this worker: {}: {}",
                                                 InfoOf(failure.code).name, failure.message));
  }
  log::Warning("coordinator.refused code={} message=\"{}\"", InfoOf(failure.code).name,
               failure.message);
  SetRegistered(false);
  next_hello_ =
      parts_.clock.Now() +
      std::max<Nanos>(options_.hello_interval, std::chrono::milliseconds(refused.retry_after_ms));
  return {};
}

Status Session::Handle(const wire::UnknownMember& unknown) {
  log::Warning("coordinator.unknown_message member={}", unknown.member);
  return {};
}

void Session::TakeFinished() {
  for (wire::Report& report : parts_.runner.TakeFinished()) {
    const LeaseId lease = report.lease;
    unstored_[lease] = {.report = std::move(report)};
  }
}

void Session::SendReports() {
  if (!is_registered_) return;
  auto next = unstored_.begin();
  while (next != unstored_.end()) {
    wire::Reports reports;
    std::vector<Unstored*> chosen;
    std::size_t bytes = wire::kMessageOverheadBytes;
    for (; next != unstored_.end() && chosen.size() < options_.max_reports_per_message; ++next) {
      if (next->second.is_sent) continue;
      bytes += wire::EncodedSize(next->second.report.evaluation);
      if (bytes > wire::kMaxMessageBytes && !chosen.empty()) break;
      chosen.push_back(&next->second);
      reports.reports.push_back(next->second.report);
    }
    if (chosen.empty() || !Send(reports)) return;  // sent when the connection takes more
    for (Unstored* unstored : chosen) unstored->is_sent = true;
  }
}

void Session::SendHelloIfDue(Instant now) {
  if (is_registered_ || now < next_hello_) return;
  hello_.held = Held();
  Send(hello_);
  next_hello_ = now + options_.hello_interval;
}

void Session::SendHeartbeatIfDue(Instant now) {
  if (!is_registered_ || now < next_heartbeat_) return;
  wire::Heartbeat heartbeat;
  heartbeat.drain = is_draining_ ? wire::DrainState::kDraining : wire::DrainState::kServing;
  for (const wire::HeldLease& held : Held()) heartbeat.held.push_back(held.lease);
  const CanaryHealth canaries = parts_.canaries();
  heartbeat.canary_ratio = canaries.ratio;
  if (canaries.drifting) heartbeat.canary = wire::CanaryState::kDrifting;
  if (canaries.steady_until) {
    heartbeat.steady_since_ms = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now - *canaries.steady_until)
            .count());
  }
  Send(heartbeat);
  next_heartbeat_ = now + heartbeat_interval_;
}

Status Session::NoticeSilence(Instant now) {
  const Nanos patience = options_.silent_intervals *
                         (is_registered_ ? heartbeat_interval_ : Nanos(options_.hello_interval));
  if (now - last_heard_ <= patience) return {};
  if (is_registered_) {
    log::Warning("coordinator.silent ms={}",
                 std::chrono::duration_cast<std::chrono::milliseconds>(now - last_heard_).count());
  }
  return Connect();
}

std::vector<wire::HeldLease> Session::Held() const {
  std::vector<wire::HeldLease> held = parts_.runner.Held();
  for (const auto& [lease, unstored] : unstored_) {
    held.push_back({.lease = lease, .job = unstored.report.job});
  }
  return held;
}

void Session::StartDrain() {
  is_draining_ = true;
  returned_ = parts_.runner.DropUnstarted();
  next_heartbeat_ = parts_.clock.Now();  // says at once that nothing more is to be granted
  log::Info("worker.draining running={} returned={}", parts_.runner.Held().size(),
            returned_.size());
}

bool Session::IsDrained(Instant now) {
  if (!parts_.runner.Held().empty()) return false;
  if (unstored_.empty()) return true;
  if (!idle_since_) idle_since_ = now;
  if (now - *idle_since_ < options_.drain_limit) return false;
  log::Warning("worker.reports_lost count={} reason=\"not stored within the drain limit\"",
               unstored_.size());
  return true;
}

void Session::SayGoodbye() {
  if (is_registered_) Send(wire::Goodbye{.returned = returned_});
  SetRegistered(false);
}

Nanos Session::TimeToNextTimer(Instant now) const {
  const Instant next = is_registered_ ? next_heartbeat_ : next_hello_;
  return std::clamp<Nanos>(next - now, Nanos{0}, options_.longest_wait);
}

}  // namespace loopfleet::worker
