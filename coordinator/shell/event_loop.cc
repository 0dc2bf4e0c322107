#include "coordinator/shell/event_loop.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/wire/codec/codec.h"
#include "common/wire/codec/submission_digest.h"
#include "coordinator/core/rules/permission.h"
#include "coordinator/shell/identity.h"
#include "coordinator/shell/storage_queries.h"

namespace loopfleet::coordinator {

EventLoop::EventLoop(const Parts& parts)
    : parts_(parts), submissions_(parts.max_request_bytes), requests_(parts.max_request_bytes) {
  poller_.Add(parts_.clients);
  poller_.Add(parts_.workers);
  poller_.Add(parts_.wakeup);
  if (parts_.key_watcher != nullptr) parts_.key_watcher->AddTo(poller_);
}

void EventLoop::Recover(storage::Recovery recovery) {
  Recovered event{.epoch = recovery.epoch,
                  .incarnation = recovery.incarnation,
                  .next_batch = recovery.next_batch,
                  .batches = std::move(recovery.unfinished),
                  .damaged = std::move(recovery.damaged),
                  .reference_clocks = std::move(recovery.reference_clocks),
                  .drains = std::move(recovery.drains)};
  for (const storage::StoredBatch& batch : event.batches) {
    event.jobs_to_come += batch.job_count - batch.finished;
  }
  if (event.jobs_to_come > 0) to_recover_ = parts_.reader.ReadUnfinished(event.batches);
  log::Info("coordinator.recovered epoch={} batches={} jobs_to_come={}", event.epoch,
            event.batches.size(), event.jobs_to_come);
  parts_.metrics.DamagedRows(recovery.damaged_batches);
  parts_.observer.status().Recovered(event.epoch, event.batches.size(), event.jobs_to_come);
  Give(std::move(event));
  LF_FAILPOINT("coordinator.recovered");
}

Recovered::Job EventLoop::ResolveRecovered(storage::UnfinishedJob job) {
  return {.id = job.job,
          .job = parts_.resolver.ResolveRecovered(std::move(job.spec), job.replayed),
          .accepted_at = job.accepted_at};
}

Status EventLoop::RecoverSomeJobs() {
  if (to_recover_ == nullptr) return {};
  JobsRecovered event;
  std::vector<storage::UnfinishedJob> jobs;
  LF_TRY_VOID(to_recover_->Read(kJobsPerPiece, jobs, event.damaged));
  parts_.metrics.DamagedRows(event.damaged.size());
  if (!event.damaged.empty()) {
    log::Error(
        "coordinator.jobs_lost count={} first={} last={}: what they asked cannot be read; "
        "they end as STORAGE_CORRUPT",
        event.damaged.size(), event.damaged.front(), event.damaged.back());
  }
  for (storage::UnfinishedJob& job : jobs) event.jobs.push_back(ResolveRecovered(std::move(job)));
  if (to_recover_->at_end()) {
    event.part = JobsRecovered::Part::kLast;
    to_recover_.reset();
    log::Info("coordinator.recovered_all");
  }
  Give(std::move(event));
  return {};
}

void EventLoop::RecoverEarly(const wire::WorkerMessage& message) {
  if (to_recover_ == nullptr) return;
  std::vector<JobId> wanted;
  if (const auto* hello = std::get_if<wire::WorkerHello>(&message)) {
    for (const wire::HeldLease& held : hello->held) wanted.push_back(held.job);
  }
  JobsRecovered event{.part = JobsRecovered::Part::kEarly};
  for (const JobId id : wanted) {
    if (parts_.core.Has(id)) continue;
    auto job = to_recover_->ReadOutOfOrder(id);
    // An unreadable job is handled when RecoverSomeJobs reaches it.
    if (job && *job) event.jobs.push_back(ResolveRecovered(**std::move(job)));
  }
  if (!event.jobs.empty()) Give(std::move(event));
}

void EventLoop::RequestStop() {
  stop_requested_ = true;
  parts_.wakeup.Signal();
}

Status EventLoop::Run() {
  bool stopping = false;
  Instant stop_by{};
  while (true) {
    const Nanos until_tick = next_tick_ - parts_.clock.Now();
    const bool has_more =
        to_recover_ != nullptr || parts_.runner.HasReads() || !requests_.empty() || MaySubmit();
    poller_.Wait(has_more ? Nanos{0} : std::clamp<Nanos>(until_tick, Nanos{0}, kTick));
    if (stop_requested_ && !stopping) {
      stopping = true;
      parts_.health.Stopping();
      parts_.observer.status().Stopping();
      stop_by = parts_.clock.Now() + kStopLimit;
      Give(DrainRequested{});
    }
    ServeHandshakes();
    wire::Received no_message;
    ApplyKeyChanges(no_message);  // even without a message: revoked peers are sent nothing more
    GiveStorageEvents();
    GiveShared();
    SendBlobAnswers();
    ReceiveFromClients();
    ServeClients();
    ReceiveFromWorkers();
    ReadPages();
    TickIfDue();
    LF_TRY_VOID(RecoverSomeJobs());
    parts_.health.LoopTurned(parts_.clock.Now());
    if (auto fatal = parts_.storage.fatal()) return std::unexpected(*std::move(fatal));
    const bool is_idle = !parts_.core.HasWritesUnderWay() && !parts_.runner.HasReads() &&
                         requests_.empty() && submissions_.empty() &&
                         (parts_.shared == nullptr || parts_.shared->empty());
    if (stopping && is_idle) return {};
    if (stopping && parts_.clock.Now() > stop_by) {
      log::Warning("coordinator.stopped_early what is not written is measured again");
      return {};
    }
  }
}

void EventLoop::Give(Event event) {
  Handle(std::move(event));
  std::vector<Event> next = parts_.runner.TakeEvents();
  while (!next.empty()) {  // a peer is found unreachable once, so this ends
    for (Event& one : next) Handle(std::move(one));
    next = parts_.runner.TakeEvents();
  }
}

void EventLoop::Handle(Event event) {
  const Moment now{.instant = parts_.clock.Now(), .wall = parts_.clock.WallNow()};
  const std::string_view kind = kEventNames[event.index()];
  parts_.runner.Run(parts_.core.On(std::move(event), now));
  parts_.metrics.EventTook(kind, parts_.clock.Now() - now.instant);
}

void EventLoop::GiveStorageEvents() {
  for (Event& event : parts_.storage.TakeEvents()) Give(std::move(event));
}

void EventLoop::SendBlobAnswers() {
  parts_.runner.Run(parts_.blobs.TakeAnswers());
  for (Event& event : parts_.runner.TakeEvents()) Give(std::move(event));
}

void EventLoop::ServeHandshakes() {
  if (parts_.key_watcher == nullptr) return;
  parts_.key_watcher->Serve(parts_.clock.Now());
  // A refused handshake counts as a refused request.
  const std::string_view code = InfoOf(FailureCode::kUnauthenticated).name;
  for (std::uint64_t refused = parts_.key_watcher->TakeRefusedCount(); refused > 0; --refused) {
    parts_.metrics.Refused(code);
  }
}

void EventLoop::ApplyKeyChanges(wire::Received& received) {
  if (parts_.key_watcher == nullptr) return;
  std::set<KeyText> revoked = parts_.key_watcher->TakeRevoked(parts_.clock.Now());
  if (revoked.empty()) return;
  if (revoked.contains(received.sender.key)) {
    received.sender = {.standing = wire::Sender::Standing::kRevoked};
  }
  submissions_.Revoke(revoked);
  requests_.Revoke(revoked);
  parts_.runner.ForgetReadsOf(revoked);
  Give(KeysRevoked{std::move(revoked)});
}

void EventLoop::ReceiveFromClients() {
  const Instant until = parts_.clock.Now() + kMaxTimePerTurn;
  for (int i = 0; i < kMaxRequestsPerTurn && parts_.clock.Now() < until; ++i) {
    auto received = parts_.clients.Receive();
    if (!received) return;
    ApplyKeyChanges(*received);
    Queue(*std::move(received));
  }
}

void EventLoop::Queue(wire::Received request) {
  if (IsRevoked(request.sender)) return RefuseRevoked(request.peer);
  const wire::RequestHead head = wire::PeekAtRequest(request.frame);
  // A hello is served at once: it decides in whose name the peer's next requests are queued.
  if (head.kind == wire::RequestHead::Kind::kHello) {
    OnClientFrame(request);
    return;
  }
  const bool is_submission = head.kind == wire::RequestHead::Kind::kSubmission;
  const Uuid payer = parts_.core.PayerOf(request.peer, request.sender.key);
  if (auto why = (is_submission ? submissions_ : requests_).Add(payer, request)) {
    RefuseClient(
        request.peer, head.number,
        {.failure = *std::move(why), .retry_after_ms = parts_.core.state().limits.retry_after_ms});
  }
}

void EventLoop::Serve(RequestQueue& requests, Instant until) {
  const Instant start = parts_.clock.Now();
  auto [payer, request] = requests.Take();
  ApplyKeyChanges(request.received);
  if (IsRevoked(request.received.sender)) {
    RefuseRevoked(request.received.peer);
  } else {
    const Seen seen = request.admission == nullptr ? Seen::kNow : Seen::kEarlier;
    if (request.admission == nullptr) {
      request.admission = OnClientFrame(request.received);
      request.received.frame = {};
    }
    if (request.admission != nullptr) {
      const Instant begun = parts_.clock.Now();
      request.admission->Continue(parts_.resolver, parts_.clock, until);
      parts_.metrics.EventTook(kAdmissionSlice, parts_.clock.Now() - begun);
      if (request.admission->is_over()) {
        OnAdmitted(*request.admission, seen);
      } else {
        requests.PutBack(payer, std::move(request));
      }
    }
  }
  requests.Charge(payer, parts_.clock.Now() - start);
}

void EventLoop::ServeClients() {
  Instant until = parts_.clock.Now() + kMaxTimePerTurn;
  while (!requests_.empty() && parts_.clock.Now() < until) Serve(requests_, until);
  until = parts_.clock.Now() + kMaxResolvingPerTurn;
  while (MaySubmit() && parts_.clock.Now() < until) Serve(submissions_, until);
}

void EventLoop::ReceiveFromWorkers() {
  const Instant until = parts_.clock.Now() + kMaxTimePerTurn;
  for (int i = 0; i < kMaxMessagesPerTurn && parts_.clock.Now() < until; ++i) {
    auto received = parts_.workers.Receive();
    if (!received) return;
    ApplyKeyChanges(*received);
    OnWorkerFrame(*received);
  }
}

// Runs after all other requests, which therefore do not wait for pages.
void EventLoop::ReadPages() {
  const Instant until = parts_.clock.Now() + kMaxReadingPerTurn;
  while (parts_.runner.HasReads()) {
    const Instant start = parts_.clock.Now();
    parts_.runner.ReadNext();
    parts_.metrics.EventTook(kPageRead, parts_.clock.Now() - start);
    for (Event& event : parts_.runner.TakeEvents()) Give(std::move(event));
    if (parts_.clock.Now() >= until) return;
  }
}

void EventLoop::RefuseClient(const PeerId& peer, std::uint64_t number, wire::Refused refused) {
  Effects effects;
  effects.push_back(Observation{RequestWasRefused{refused.failure.code}});
  effects.push_back(ReplyToClient{.peer = peer, .number = number, .message = std::move(refused)});
  parts_.runner.Run(std::move(effects));
}

// The frame is not decoded, so the refusal carries number 0.
void EventLoop::RefuseRevoked(const PeerId& client) {
  RefuseClient(client, 0, {.failure = KeyWasRevoked()});
}

void EventLoop::RefuseWorker(const PeerId& peer, Failure failure) {
  Effects effects;
  effects.push_back(Observation{RequestWasRefused{failure.code}});
  effects.push_back(
      SendToWorker{.peer = peer, .command = wire::Refused{.failure = std::move(failure)}});
  parts_.runner.Run(std::move(effects));
}

std::unique_ptr<Admission> EventLoop::OnClientFrame(const wire::Received& received) {
  LF_FAILPOINT("coordinator.client_frame");
  const wire::Sender& sender = received.sender;
  auto request = wire::DecodeClientRequest(received.frame);
  if (!request) {
    parts_.metrics.MalformedMessage();
    RefuseClient(received.peer, request.error().number,
                 {.failure = std::move(request.error().failure)});
    return nullptr;
  }
  return std::visit(
      [&](auto& message) -> std::unique_ptr<Admission> {
        using Message = std::decay_t<decltype(message)>;
        if constexpr (std::is_same_v<Message, wire::SubmitJobs>) {
          return OnSubmit(received, request->number, std::move(message));
        } else {
          if constexpr (requires { Identify(sender, message); }) Identify(sender, message);
          std::optional<Failure> no_outcome;
          if constexpr (std::is_same_v<Message, wire::FlagResults>) {
            // Reading is not for those whom the core refuses.
            if (IsPermitted(RoleOf(sender), kNeedOf<Message>, Ownership::kAnothers)) {
              no_outcome = WhyNotFlagged(parts_.reader, message);
            }
          }
          Give(ClientAsked{.peer = received.peer,
                           .number = request->number,
                           .question = std::move(message),
                           .role = RoleOf(sender),
                           .key = sender.key,
                           .no_outcome = std::move(no_outcome)});
          return nullptr;
        }
      },
      request->message);
}

std::unique_ptr<Admission> EventLoop::OnSubmit(const wire::Received& received, std::uint64_t number,
                                               wire::SubmitJobs submit) {
  const PeerId& peer = received.peer;
  Submission event{.peer = peer,
                   .key = received.sender.key,
                   .number = number,
                   .request_id = submit.request_id,
                   .append_to = submit.append_to,
                   .end = submit.end};
  const auto client = parts_.core.ClientOf(peer, received.sender.key);
  if (client) {
    auto seen = parts_.reader.FindRequest(*client, submit.request_id);
    if (!seen) {
      RefuseClient(peer, number, Unreadable(seen.error()));
      return nullptr;
    }
    event.seen = *std::move(seen);
  }
  event.digest = event.seen ? wire::SubmissionDigestOfSameKind(event.seen->request_digest, submit)
                            : wire::SubmissionDigest(submit);
  // Jobs are admitted only for a known client, a new request, and when there is room. Otherwise the
  // core refuses the submission, or answers the repeat, without looking at the jobs.
  if (client && !event.seen) {
    event.no_room = parts_.core.CheckRoomFor(*client, submit, parts_.clock.Now());
  }
  if (client && !event.seen && !event.no_room && !submit.jobs.empty()) {
    return std::make_unique<Admission>(std::move(event), std::move(submit.jobs),
                                       parts_.core.state());
  }
  if (parts_.shared != nullptr) {  // the message may close a batch whose jobs wait there
    parts_.shared->Add(std::move(event), {});
    GiveShared();
    return nullptr;
  }
  Give(std::move(event));
  return nullptr;
}

void EventLoop::OnAdmitted(Admission& admission, Seen seen) {
  LF_FAILPOINT("coordinator.submission_admitted");
  Submission submission = admission.Take();
  if (parts_.shared != nullptr) {
    parts_.shared->Add(std::move(submission), admission.conditions());
    return GiveShared();
  }
  if (seen == Seen::kEarlier) CatchUp(submission);
  Give(std::move(submission));
}

void EventLoop::GiveShared() {
  if (parts_.shared == nullptr) return;
  while (auto submission = parts_.shared->TakeNext()) {
    CatchUp(*submission);
    Give(*std::move(submission));
  }
}

// While the jobs of this one were resolved, the core may have heard that an earlier copy of the
// request is on disk, and forgotten that it was on its way there; and affinities may have been
// bound.
void EventLoop::CatchUp(Submission& submission) {
  const State& state = parts_.core.state();
  if (submission.affinity_changes != state.affinities.changes()) {
    parts_.resolver.MeasureStale(submission.jobs, StoredConditions(state));
  }
  const auto client = parts_.core.ClientOf(submission.peer, submission.key);
  if (!client) return;
  if (auto seen = parts_.reader.FindRequest(*client, submission.request_id)) {
    submission.seen = *std::move(seen);
  }
}

void EventLoop::OnWorkerFrame(const wire::Received& received) {
  LF_FAILPOINT("coordinator.worker_frame");
  if (IsRevoked(received.sender)) return RefuseWorker(received.peer, KeyWasRevoked());
  auto message = wire::DecodeWorkerMessage(received.frame);
  if (message) {
    RecoverEarly(*message);
    if (auto* hello = std::get_if<wire::WorkerHello>(&*message)) {
      Identify(received.sender, *hello);
    }
    return Give(WorkerSaid{
        .peer = received.peer, .message = *std::move(message), .key = received.sender.key});
  }
  parts_.metrics.MalformedMessage();
  if (const auto count = malformed_log_.Count(parts_.clock.Now())) {
    log::Warning("worker.malformed count={} last=\"{}\"", *count, message.error().message);
  }
  RefuseWorker(received.peer, std::move(message).error());
}

void EventLoop::TickIfDue() {
  const Instant now = parts_.clock.Now();
  if (now < next_tick_) return;
  next_tick_ = now + kTick;
  Give(Tick{});
  CountMalformed();
  CountUnsent(now);
  parts_.metrics.SetWaitingRequests(submissions_.bytes() + requests_.bytes());
  parts_.metrics.DamagedRows(parts_.reader.TakeDamagedCount());
  const Moment moment{.instant = now, .wall = parts_.clock.WallNow()};
  parts_.observer.status().SetStorageTrouble(parts_.storage.trouble());
  if (!parts_.board.IsDue(now)) return;
  if (parts_.mirror != nullptr) parts_.observer.status().SetMirror(parts_.mirror->state());
  FleetSnapshot snapshot = parts_.observer.Look(parts_.core, moment);
  if (parts_.key_watcher != nullptr) snapshot.client_names = parts_.key_watcher->client_names();
  parts_.board.Show(std::move(snapshot));
}

void EventLoop::CountMalformed() {
  const std::uint64_t seen = parts_.clients.malformed_count() + parts_.workers.malformed_count();
  for (; malformed_seen_ < seen; ++malformed_seen_) parts_.metrics.MalformedMessage();
}

void EventLoop::CountUnsent(Instant now) {
  const std::uint64_t seen = parts_.clients.unsent_count() + parts_.workers.unsent_count();
  for (; unsent_seen_ < seen; ++unsent_seen_) {
    parts_.metrics.MessageUnsent();
    if (const auto count = unsent_log_.Count(now)) {
      log::Warning("peer.slow unsent={} waiting_bytes={}: peers do not read what is sent to them",
                   *count, parts_.clients.unread_bytes() + parts_.workers.unread_bytes());
    }
  }
}

}  // namespace loopfleet::coordinator
