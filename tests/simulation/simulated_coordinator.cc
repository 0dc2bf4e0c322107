#include "tests/simulation/simulated_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/wire/codec/codec.h"
#include "common/wire/codec/submission_digest.h"
#include "tests/simulation/message_text.h"

namespace loopfleet::simulation {
namespace {

using coordinator::Effects;
using coordinator::Event;
using coordinator::PeerId;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Constants of the event loop and the storage thread.
constexpr Nanos kRetryPause = milliseconds(100);
constexpr Nanos kStopLimit = seconds(5);

}  // namespace

SimulatedCoordinator::SimulatedCoordinator(const Parts& parts, std::uint64_t seed)
    : parts_(parts),
      wrapped_(parts.bug != nullptr ? parts.bug->Wrap(parts.disk) : nullptr),
      disk_(wrapped_ ? wrapped_.get() : &parts.disk),
      dice_(seed, 2),
      recovery_dice_(seed, 20) {}

template <class Action>
void SimulatedCoordinator::After(Nanos delay, Action action) {
  parts_.agenda.After(delay, [this, life = life_, action] {
    if (life_ == life) action();
  });
}

coordinator::Moment SimulatedCoordinator::Now() const {
  const Instant now = parts_.agenda.now();
  return {.instant = now,
          .wall = WallTime(seconds(1'700'000'000) + now.time_since_epoch() + wall_offset_)};
}

void SimulatedCoordinator::Start() {
  LF_CHECK(!core_, "it runs already");
  ++life_;
  auto recovery = disk_->Open();
  if (!recovery) {
    parts_.trace.Note(parts_.agenda.now(), 1, 0, 0,
                      [&] { return "coordinator does not start: " + recovery.error().message; });
    return RestartLater();
  }
  parts_.trace.Note(parts_.agenda.now(), 2, recovery->epoch, recovery->jobs.size(), [&] {
    return fmt::format("coordinator starts: epoch {}, {} unfinished jobs", recovery->epoch,
                       recovery->jobs.size());
  });
  coordinator::Limits limits = parts_.mix.limits;
  if (parts_.bug != nullptr) parts_.bug->OnLimits(limits);
  core_ = std::make_unique<coordinator::Core>(
      coordinator::Core::Options{.limits = limits, .name = "simulated"});
  backlog_ = {};
  to_recover_.clear();
  is_writing_ = is_stopping_ = false;
  effects_to_live_.reset();
  frozen_until_ = {};
  parts_.checker.Started();
  const std::uint64_t life = life_;
  Recover(*std::move(recovery));
  if (life_ != life) return;
  After(parts_.mix.tick, [this] { Tick(); });
  After(seconds(1), [this] { SecondPasses(); });
  parts_.clients.Open(
      [this](const PeerId& peer, wire::ClientRequest request) {
        Deliver(std::pair(peer, std::move(request)));
      },
      // The shell alone refuses unreadable messages. The request number may be garbled, too, so the
      // checker does not see this.
      [this](const PeerId& peer, const Unreadable& garbled) {
        (void)parts_.clients.Send(
            peer, {.number = garbled.number, .message = wire::Refused{.failure = garbled.failure}});
      });
  parts_.workers.Open(
      [this](const PeerId& peer, wire::WorkerMessage message) {
        Deliver(std::pair(peer, std::move(message)));
      },
      [this](const PeerId& peer, const Unreadable& garbled) {
        (void)parts_.workers.Send(peer, wire::Refused{.failure = garbled.failure});
      });
}

void SimulatedCoordinator::Heal() {
  is_healed_ = true;
  effects_to_live_.reset();
  is_full_ = false;
  parts_.disk.SetFull(false);
}

void SimulatedCoordinator::Recover(storage::Recovery recovery) {
  coordinator::Recovered event{.epoch = recovery.epoch,
                               .next_batch = recovery.next_batch,
                               .batches = std::move(recovery.unfinished),
                               .damaged = std::move(recovery.damaged),
                               .reference_clocks = std::move(recovery.reference_clocks),
                               .drains = std::move(recovery.drains)};
  for (storage::UnfinishedJob& job : recovery.jobs) {
    event.jobs.push_back({.id = job.job,
                          .job = job.replayed
                                     ? coordinator::ResolvedJob{.spec = job.spec,
                                                                .resolution = JobPool::Recall(
                                                                    *job.replayed, job.spec)}
                                     : disk_->Resolve(std::move(job.spec), {}),
                          .accepted_at = job.accepted_at});
  }
  // A random part is recovered at once; the rest follows piece by piece, as in the real shell.
  const std::size_t first = recovery_dice_.Index(event.jobs.size() + 1);
  const auto rest = event.jobs.begin() + static_cast<std::ptrdiff_t>(first);
  to_recover_.assign(rest, event.jobs.end());
  event.jobs.erase(rest, event.jobs.end());
  event.jobs_to_come = to_recover_.size();
  const std::uint64_t life = life_;
  const bool more_to_come = !to_recover_.empty();
  Give(std::move(event));
  if (life_ == life && more_to_come) RecoverSomeLater();
}

void SimulatedCoordinator::RecoverSomeLater() {
  After(recovery_dice_.Between(Nanos{0}, Nanos(std::chrono::milliseconds(100))), [this] {
    coordinator::JobsRecovered event;
    const std::size_t count = 1 + recovery_dice_.Index(to_recover_.size());
    const auto end = to_recover_.begin() + static_cast<std::ptrdiff_t>(count);
    event.jobs.assign(to_recover_.begin(), end);
    to_recover_.erase(to_recover_.begin(), end);
    const bool more_to_come = !to_recover_.empty();
    if (!more_to_come) event.part = coordinator::JobsRecovered::Part::kLast;
    const std::uint64_t life = life_;
    Give(std::move(event));
    if (life_ == life && more_to_come) RecoverSomeLater();
  });
}

// Jobs that the worker holds must be recovered before its hello. They come again in their turn; the
// core skips them then, whatever their state.
void SimulatedCoordinator::RecoverEarly(const wire::WorkerMessage& message) {
  const auto* hello = std::get_if<wire::WorkerHello>(&message);
  if (hello == nullptr) return;
  coordinator::JobsRecovered event{.part = coordinator::JobsRecovered::Part::kEarly};
  for (const wire::HeldLease& held : hello->held) {
    const auto job = std::ranges::find(to_recover_, held.job, &coordinator::Recovered::Job::id);
    if (job != to_recover_.end() && !core_->Has(held.job)) event.jobs.push_back(*job);
  }
  if (!event.jobs.empty()) Give(std::move(event));
}

// ---- events in ----------------------------------------------------------------------------------

void SimulatedCoordinator::Deliver(Incoming incoming) {
  if (parts_.agenda.now() < frozen_until_) {
    unread_.push_back(std::move(incoming));
    return;
  }
  if (auto* request = std::get_if<0>(&incoming)) {
    OnClientRequest(request->first, std::move(request->second));
  } else {
    auto& message = std::get<1>(incoming);
    OnWorkerMessage(message.first, std::move(message.second));
  }
}

void SimulatedCoordinator::OnClientRequest(const PeerId& peer, wire::ClientRequest request) {
  parts_.trace.Note(parts_.agenda.now(), 3, request.number, request.message.index(), [&] {
    return fmt::format("{} -> coordinator: {} {}", peer, request.number, TextOf(request.message));
  });
  parts_.checker.Heard(peer, request);
  std::visit(
      [&](auto& message) {
        if constexpr (std::is_same_v<std::decay_t<decltype(message)>, wire::SubmitJobs>) {
          OnSubmit(peer, request.number, std::move(message));
        } else {
          Give(coordinator::ClientAsked{
              .peer = peer, .number = request.number, .question = std::move(message)});
        }
      },
      request.message);
}

void SimulatedCoordinator::OnSubmit(const PeerId& peer, std::uint64_t number,
                                    wire::SubmitJobs submit) {
  const bool is_encoded = parts_.mix.bytes == Bytes::kEncoded;
  coordinator::Submission event{
      .peer = peer,
      .number = number,
      .request_id = submit.request_id,
      .digest = is_encoded ? wire::SubmissionDigest(submit) : ContentText(submit),
      .append_to = submit.append_to,
      .end = submit.end};
  const auto client = core_->ClientOf(peer);
  if (client) {
    auto seen = disk_->FindRequest(*client, submit.request_id);
    LF_CHECK(seen, "{}", seen.error().message);
    event.seen = *std::move(seen);
  }
  if (client && !event.seen) {
    event.no_room = core_->CheckRoomFor(*client, submit, parts_.agenda.now());
  }
  if (client && !event.seen && !event.no_room) {
    const coordinator::StoredConditions conditions(core_->state());
    for (JobSpec& spec : submit.jobs) {
      event.jobs.push_back(disk_->Resolve(std::move(spec), conditions));
    }
  }
  Give(std::move(event));
}

void SimulatedCoordinator::OnWorkerMessage(const PeerId& peer, wire::WorkerMessage message) {
  parts_.trace.Note(parts_.agenda.now(), 4, message.index(), parts_.trace.notes(),
                    [&] { return fmt::format("{} -> coordinator: {}", peer, TextOf(message)); });
  parts_.checker.Heard(parts_.agenda.now(), peer, message);
  const std::uint64_t life = life_;
  RecoverEarly(message);
  if (life_ != life) return;
  Give(coordinator::WorkerSaid{.peer = peer, .message = std::move(message)});
}

void SimulatedCoordinator::Give(Event event) {
  const std::uint64_t life = life_;
  std::deque<Event> waiting;
  waiting.push_back(std::move(event));
  while (!waiting.empty()) {
    std::vector<Event> events;
    events.push_back(std::move(waiting.front()));
    waiting.pop_front();
    if (parts_.bug != nullptr) parts_.bug->OnEvents(events, *core_);
    for (Event& one : events) {
      coordinator::Moment now = Now();
      if (parts_.bug != nullptr) parts_.bug->OnMoment(now);
      parts_.checker.WillHandle(one);
      const std::uint64_t rows_seen = core_->rows_seen();
      Effects effects = core_->On(std::move(one), now);
      const std::uint64_t rows = core_->rows_seen() - rows_seen;
      if (parts_.mix.checks_core) core_->CheckInvariants();
      if (parts_.bug != nullptr) parts_.bug->OnEffects(effects, *core_);
      parts_.checker.Handled(effects, rows);
      std::vector<Event> next;
      Run(std::move(effects), next);
      if (life_ != life) return;
      std::ranges::move(next, std::back_inserter(waiting));
    }
  }
}

void SimulatedCoordinator::Tick() {
  After(parts_.mix.tick, [this] { Tick(); });
  if (parts_.agenda.now() < frozen_until_) return;
  Give(coordinator::Tick{});
}

// ---- effects out --------------------------------------------------------------------------------

struct SimulatedCoordinator::Doer {
  SimulatedCoordinator& self;
  std::vector<Event>& next;

  void operator()(coordinator::ReplyToClient& effect) const {
    self.Reply(effect.peer, effect.number, std::move(effect.message), next);
  }
  void operator()(coordinator::SendOutcomes& effect) const {
    self.Reply(effect.peer, effect.number, self.disk_->Outcomes(effect.fetch), next);
  }
  void operator()(coordinator::AnswerFromStorage& effect) const {
    self.Reply(effect.peer, effect.number,
               std::visit([this](const auto& question) { return self.disk_->Answer(question); },
                          effect.question),
               next);
  }
  void operator()(coordinator::SendFleet& effect) const {
    self.Reply(effect.peer, effect.number, FleetInfoOf(effect.fleet), next);
  }
  void operator()(coordinator::SendJob& effect) const {
    self.Reply(effect.peer, effect.number, self.disk_->Job(effect.job, effect.live), next);
  }
  void operator()(coordinator::SendToWorker& effect) const {
    self.parts_.trace.Note(self.parts_.agenda.now(), 5, effect.command.index(), 0, [&] {
      return fmt::format("coordinator -> {}: {}", effect.peer, TextOf(effect.command));
    });
    self.parts_.checker.Said(self.parts_.agenda.now(), effect.peer, effect.command);
    coordinator::WorkerUnreachable unreachable{.peer = effect.peer};
    if (const auto* leases = std::get_if<wire::Leases>(&effect.command)) {
      for (const wire::Lease& lease : leases->leases) {
        unreachable.undelivered.push_back(lease.lease);
      }
    }
    if (self.parts_.workers.Send(effect.peer, std::move(effect.command))) return;
    self.parts_.checker.FoundUnreachable(effect.peer, unreachable.undelivered);
    next.push_back(std::move(unreachable));
  }
  // Simulated kernels have no machine code, so none is found.
  void operator()(const coordinator::AnswerCodeLookup& effect) const {
    coordinator::SendToWorker answer{
        .peer = effect.peer, .command = wire::CodeLookupAnswer{.lease = effect.lookup.lease}};
    (*this)(answer);
  }
  // No simulated peer has programs.
  void operator()(const coordinator::KeepBlob&) const {}
  void operator()(const coordinator::SendBlob&) const {}
  void operator()(coordinator::Persist& effect) const {
    for (const storage::Write& write : effect.writes) {
      self.parts_.checker.WillWrite(self.parts_.agenda.now(), write);
    }
    self.backlog_.Add(std::move(effect));
    if (self.is_writing_) return;
    self.is_writing_ = true;
    self.After(Nanos{0}, [&coordinator = self] { coordinator.StartWriting(); });
  }
  void operator()(const coordinator::Observation&) const {}
};

void SimulatedCoordinator::Run(Effects effects, std::vector<Event>& next) {
  for (coordinator::Effect& effect : effects) {
    if (effects_to_live_ && (*effects_to_live_)-- == 0) {
      return Kill(dice_.Chance(0.5) ? Disk::Crash::kProcess : Disk::Crash::kPower);
    }
    std::visit(Doer{*this, next}, effect);
  }
}

void SimulatedCoordinator::Reply(const PeerId& peer, std::uint64_t number,
                                 wire::CoordinatorMessage what, std::vector<Event>& next) {
  parts_.trace.Note(parts_.agenda.now(), 6, number, what.index(), [&] {
    return fmt::format("coordinator -> {}: {} {}", peer, number, TextOf(what));
  });
  wire::CoordinatorReply reply{.number = number, .message = std::move(what)};
  parts_.checker.Said(parts_.agenda.now(), peer, reply);
  if (parts_.clients.Send(peer, std::move(reply))) return;
  parts_.checker.FoundUnreachable(peer);
  next.push_back(coordinator::ClientUnreachable{peer});
}

// ---- the disk -----------------------------------------------------------------------------------

void SimulatedCoordinator::StartWriting() {
  if (backlog_.empty()) {
    is_writing_ = false;
    return;
  }
  for (const auto writes : backlog_.StartGroup()) {
    group_.insert(group_.end(), writes.begin(), writes.end());
  }
  Nanos took = parts_.mix.commit_time;
  if (dice_.Chance(Rate(Fault::kSlowDisk))) took = dice_.Between(took, Nanos(seconds(2)));
  After(took, [this] { FinishWriting(std::exchange(group_, {})); });
}

void SimulatedCoordinator::FinishWriting(std::span<const storage::Write> group) {
  if (dice_.Chance(Rate(Fault::kFailDisk))) parts_.disk.FailNextApply(dice_);
  const Status applied = disk_->Apply(group);
  parts_.trace.Note(parts_.agenda.now(), 7, group.size(), applied ? 1 : 0, [&] {
    return applied ? fmt::format("disk: {} writes durable", group.size())
                   : fmt::format("disk: {}", applied.error().message);
  });
  std::vector<Event> events;
  bool waits = false;
  if (applied) {
    events = backlog_.Applied().persisted;
  } else if (applied.error().kind == ErrorKind::kFull ||
             applied.error().kind == ErrorKind::kUnavailable ||
             applied.error().kind == ErrorKind::kSystem) {
    events = backlog_.NoRoom(applied.error());
    waits = events.empty();
  } else {
    parts_.checker.WroteNonsense(applied.error());
    return Exit();  // "storage cannot go on"
  }
  After(waits ? kRetryPause : Nanos{0}, [this] { StartWriting(); });
  // The event loop sees it in its next turn.
  const Nanos delay = std::max(Nanos{0}, frozen_until_ - parts_.agenda.now());
  for (Event& event : events) {
    After(delay, [this, event] { Give(event); });
  }
}

// ---- faults and the end -------------------------------------------------------------------------

void SimulatedCoordinator::SecondPasses() {
  After(seconds(1), [this] { SecondPasses(); });
  if (dice_.Chance(Rate(Fault::kClockJump))) {
    const auto years = dice_.Between(0, 20);
    wall_offset_ = std::chrono::hours(24 * 365 * (years - 10));
  }
  if (dice_.Chance(is_full_ ? 0.5 : Rate(Fault::kFullDisk))) {
    is_full_ = !is_full_ && !is_healed_;
    parts_.disk.SetFull(is_full_);
  }
  if (dice_.Chance(Rate(Fault::kFreezeCoordinator)) && parts_.agenda.now() >= frozen_until_) {
    const Nanos pause = dice_.Between(Nanos(milliseconds(200)), Nanos(seconds(5)));
    frozen_until_ = parts_.agenda.now() + pause;
    After(pause, [this] { Thaw(); });
  }
  if (dice_.Chance(Rate(Fault::kKillCoordinator))) {
    if (dice_.Chance(0.5)) {
      effects_to_live_ = dice_.Between(0, 12);
    } else {
      After(dice_.Between(Nanos{0}, Nanos(seconds(1))),
            [this] { Kill(dice_.Chance(0.5) ? Disk::Crash::kProcess : Disk::Crash::kPower); });
    }
  }
  if (dice_.Chance(Rate(Fault::kStopCoordinator))) Stop();
}

void SimulatedCoordinator::Thaw() {
  const std::uint64_t life = life_;
  while (life_ == life && !unread_.empty()) {
    Incoming next = std::move(unread_.front());
    unread_.pop_front();
    Deliver(std::move(next));
  }
}

void SimulatedCoordinator::Kill(Disk::Crash how) {
  if (!core_ || is_healed_) return;
  parts_.trace.Note(parts_.agenda.now(), 8, static_cast<std::uint64_t>(how), 0, [&] {
    return std::string(how == Disk::Crash::kPower ? "coordinator: the power fails"
                                                  : "coordinator is killed");
  });
  disk_->CrashNow(how, std::exchange(group_, {}), dice_);
  End();
}

void SimulatedCoordinator::Stop() {
  if (is_stopping_) return;
  parts_.trace.Note(parts_.agenda.now(), 9, 0, 0,
                    [] { return std::string("coordinator is told to stop"); });
  is_stopping_ = true;
  const std::uint64_t life = life_;
  Give(coordinator::DrainRequested{});
  if (life_ == life) WaitUntilWritten(parts_.agenda.now() + kStopLimit);
}

void SimulatedCoordinator::WaitUntilWritten(Instant stop_by) {
  if (!core_->HasWritesUnderWay() || parts_.agenda.now() > stop_by) return Exit();
  After(milliseconds(50), [this, stop_by] { WaitUntilWritten(stop_by); });
}

void SimulatedCoordinator::Exit() {
  parts_.trace.Note(parts_.agenda.now(), 10, 0, 0, [] { return std::string("coordinator ends"); });
  // The group being applied is finished first, because the thread is joined.
  if (!group_.empty()) {
    const Status applied = disk_->Apply(std::exchange(group_, {}));
    if (!applied && applied.error().kind != ErrorKind::kFull &&
        applied.error().kind != ErrorKind::kSystem) {
      parts_.checker.WroteNonsense(applied.error());
    }
  }
  disk_->Close();
  End();
}

void SimulatedCoordinator::End() {
  ++life_;
  core_.reset();
  unread_.clear();
  is_writing_ = false;
  group_ = {};
  backlog_ = {};
  parts_.clients.Close();
  parts_.workers.Close();
  parts_.checker.Ended();
  RestartLater();
}

void SimulatedCoordinator::RestartLater() {
  const Nanos pause = dice_.Between(Nanos(milliseconds(10)), Nanos(seconds(3)));
  parts_.agenda.After(pause, [this] {
    if (!core_) Start();
  });
}

}  // namespace loopfleet::simulation
