#include "tests/unit/coordinator/core/core_harness.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "coordinator/core/handlers/show_fleet.h"

namespace loopfleet::coordinator {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

SubjectKey TreeNamed(std::uint8_t tree) {
  SubjectKey key;
  key.bytes.fill(tree);
  return key;
}

Conditions ConditionsOf(DeviceKind device) {
  return {.hardware = {.device = device, .hardware_class = "test-class"},
          .compiler = {.llvm = "19", .tier = "general", .revision = "1"},
          .policy = "test-policy",
          .isolation = "none"};
}

Evaluation Measured(std::uint8_t tree, DeviceKind device) {
  return {.verdict = Measurement{.elapsed_ns = 10,
                                 .elapsed_low_ns = 9,
                                 .elapsed_high_ns = 11,
                                 .elapsed_min_ns = 9,
                                 .elapsed_mean_ns = 10,
                                 .spread = 0.1,
                                 .samples_ns = {9, 10, 11},
                                 .sample_flags = {0, 0, 0}},
          .subject = TreeNamed(tree),
          .flop_count = kFlopCount,
          .conditions = ConditionsOf(device)};
}

ResolvedJob Admitted(const JobSetup& wish) {
  const std::string uri =
      wish.benchmark.empty() ? fmt::format("tree {}", wish.tree) : wish.benchmark;
  ResolvedJob job{.spec = {.source = looptree::BenchmarkUri{uri},
                           .freshness = wish.freshness,
                           .priority = wish.priority,
                           .threads = wish.threads,
                           .labels = wish.labels,
                           .affinity = wish.affinity,
                           .precision = wish.precision,
                           .deadline_s = wish.deadline_s,
                           .min_grade = wish.min_grade}};
  if (wish.invalid) {
    job.resolution = *wish.invalid;
  } else if (wish.stored) {
    job.resolution = std::make_shared<const storage::StoredResult>(storage::StoredResult{
        .evaluation = Measured(wish.tree, DeviceKind::kCpu), .worker = "earlier"});
  } else {
    job.resolution = ResolvedTask{.subject = TreeNamed(wish.tree),
                                  .program = ContentKey::Of(uri),
                                  .placement = wish.placement,
                                  .flop_count = kFlopCount};
  }
  return job;
}

}  // namespace

Uuid Named(std::uint8_t name) {
  Uuid uuid;
  uuid.bytes.fill(name);
  return uuid;
}

void FakeDisk::Apply(const storage::Write& write) {
  std::visit(
      Overloaded{
          [&](const storage::JobsAccepted& accepted) {
            auto& batch = batches[accepted.batch];
            LF_CHECK(accepted.new_batch == !batch.batch, "batch {}", accepted.batch);
            LF_CHECK(!batch.closed, "batch {} is closed", accepted.batch);
            LF_CHECK(accepted.first_index == batch.job_count, "batch {} has {} jobs, not {}",
                     accepted.batch, batch.job_count, accepted.first_index);
            batch.batch = accepted.batch;
            batch.client = accepted.client;
            batch.closed = accepted.closes_batch;
            const RequestKey key{.client = accepted.client, .request = accepted.request_id};
            const auto count = static_cast<std::uint32_t>(accepted.jobs.size());
            const bool fresh =
                requests_
                    .try_emplace(key,
                                 storage::StoredRequest{.batch = accepted.batch,
                                                        .first_index = accepted.first_index,
                                                        .job_count = count,
                                                        .request_digest = accepted.request_digest})
                    .second;
            LF_CHECK(fresh, "request {} twice", accepted.request_id.ToString());
            for (std::size_t i = 0; i < accepted.jobs.size(); ++i) {
              const JobId id{.batch = accepted.batch, .index = batch.job_count++};
              jobs[id] = accepted.jobs[i];
              accepted_at[id] = accepted.accepted_at;
              if (const auto& replayed = accepted.replayed[i]) {
                admissions[id] =
                    ResolvedTask{.subject = replayed->subject, .placement = replayed->placement};
              }
            }
          },
          [&](const storage::JobsAnswered& answered) {
            for (const storage::JobsAnswered::One& job : answered.jobs) {
              Apply(storage::JobFinished{.outcome = storage::OutcomeOf(answered, job)});
            }
          },
          [&](const storage::JobFinished& finished) {
            const Outcome& outcome = finished.outcome;
            auto& batch = batches.at(outcome.job.batch);
            LF_CHECK(jobs.contains(outcome.job), "job {} was never accepted", outcome.job);
            LF_CHECK(outcome.sequence == ++batch.finished, "job {}: sequence {} after {}",
                     outcome.job, outcome.sequence, batch.finished - 1);
            LF_CHECK(outcomes.try_emplace(outcome.job, outcome).second, "job {} finished twice",
                     outcome.job);
            if (finished.in_doubt) in_doubt.insert(outcome.job);
            agreeing[outcome.job] = finished.agreeing;
          },
          [&](const storage::BatchClosed& closed) { batches.at(closed.batch).closed = true; },
          [&](const storage::BatchCancelled& cancelled) {
            auto& batch = batches.at(cancelled.batch);
            LF_CHECK(!batch.cancelled, "batch {} cancelled twice", cancelled.batch);
            batch.cancelled = true;
            batch.closed = true;
          },
          [&](const storage::ResultDoubted& doubt) {
            LF_CHECK(outcomes.contains(doubt.job), "job {} has no outcome", doubt.job);
            doubted.push_back(doubt);
          },
          [&](const storage::WorkersDrained& drained) {
            drains.insert_or_assign(drained.target, drained);
          },
          [&](const storage::WorkersResumed& resumed) { drains.erase(resumed.target); },
          [&](const storage::ResultsSuspected& flagged) { suspected.push_back(flagged); }},
      write);
}

std::optional<storage::StoredRequest> FakeDisk::FindRequest(const Uuid& client,
                                                            const Uuid& request) const {
  const auto found = requests_.find({.client = client, .request = request});
  if (found == requests_.end()) return std::nullopt;
  return found->second;
}

Recovered FakeDisk::Recover() const {
  Recovered recovered{.epoch = starts};
  for (const auto& [target, drained] : drains) recovered.drains.push_back(drained);
  for (const auto& [id, batch] : batches) {
    recovered.next_batch = id.value + 1;
    if (!batch.is_over()) recovered.batches.push_back(batch);
  }
  for (const auto& [id, spec] : jobs) {
    if (outcomes.contains(id)) continue;
    recovered.jobs.push_back({.id = id, .job = {spec, admissions.at(id)}, .accepted_at = {}});
    if (spec.deadline_s != 0) recovered.jobs.back().accepted_at = accepted_at.at(id);
  }
  return recovered;
}

Harness::Harness(Limits some_limits) : limits(some_limits) { Start(); }

void Harness::Start() {
  ++disk.starts;
  core = std::make_unique<Core>(Core::Options{.limits = limits, .name = "test"});
  Give(disk.Recover());
}

void Harness::Restart() {
  unwritten.clear();
  replies.clear();
  pages.clear();
  from_storage.clear();
  shown_jobs.clear();
  shown_fleets.clear();
  observations.clear();
  commands.clear();
  Start();
}

void Harness::Give(Event event) {
  for (Effect& effect : core->On(std::move(event), now)) Note(std::move(effect));
  core->CheckInvariants();
}

void Harness::Note(Effect effect) {
  std::visit(
      Overloaded{[&](ReplyToClient& reply) { replies.push_back(std::move(reply)); },
                 [&](SendOutcomes& page) { pages.push_back(std::move(page)); },
                 [&](AnswerFromStorage& answer) { from_storage.push_back(answer); },
                 [&](SendJob& job) { shown_jobs.push_back(std::move(job)); },
                 [&](SendFleet& fleet) { shown_fleets.push_back(std::move(fleet)); },
                 [&](SendToWorker& command) { commands.push_back(std::move(command)); },
                 [&](AnswerCodeLookup& lookup) { code_lookups.push_back(std::move(lookup)); },
                 [&](KeepBlob& keep) { kept_blobs.push_back(std::move(keep)); },
                 [&](SendBlob& send) { sent_blobs.push_back(std::move(send)); },
                 [&](Persist& persist) { unwritten.push_back(std::move(persist)); },
                 [&](Observation& one) { observations.push_back(std::move(one)); }},
      effect);
}

void Harness::ClientHello(const PeerId& peer, std::uint8_t client) {
  const std::uint64_t number = Ask(peer, wire::ClientHello{.client = Named(client)});
  ASSERT_TRUE(TakeReply<wire::Welcome>(peer, number));
}

std::uint64_t Harness::Submit(const PeerId& peer, std::vector<JobSetup> jobs) {
  return Submit(peer, std::move(jobs), Sent{.request = ++last_request_});
}

std::uint64_t Harness::Submit(const PeerId& peer, std::vector<JobSetup> jobs, Sent sent) {
  Submission submission{.peer = peer,
                        .key = keys[peer],
                        .number = ++last_number_,
                        .request_id = Named(sent.request),
                        .digest = fmt::format("{}/{}", sent.request, sent.content),
                        .append_to = sent.append_to,
                        .end = sent.end};
  admitted_[submission.digest].clear();  // a repeated request replaces its jobs
  for (const JobSetup& wish : jobs) {
    submission.jobs.push_back(Admitted(wish));
    admitted_[submission.digest].push_back(submission.jobs.back().resolution);
  }
  if (const auto client = core->ClientOf(peer, keys[peer])) {
    submission.seen = disk.FindRequest(*client, submission.request_id);
  }
  const std::uint64_t number = submission.number;
  Give(std::move(submission));
  return number;
}

std::uint64_t Harness::Ask(const PeerId& peer, ClientQuestion question) {
  Give(ClientAsked{
      .peer = peer, .number = ++last_number_, .question = std::move(question), .key = keys[peer]});
  return last_number_;
}

void Harness::WorkerHello(const PeerId& peer, std::uint8_t worker, Hello hello) {
  Conditions conditions = ConditionsOf(hello.device);
  conditions.hardware.clock_mhz = hello.clock_mhz;
  conditions.hardware.host = hello.host;
  conditions.hardware.isa = hello.isa;
  conditions.hardware.peaks.flop_per_second = hello.flop_per_second;
  hosts_[peer] = hello.host;
  Say(peer, wire::WorkerHello{.version = hello.version,
                              .worker = Named(worker),
                              .name = fmt::format("worker {}", worker),
                              .credit = hello.credit,
                              .hardware = conditions.hardware,
                              .compiler = conditions.compiler,
                              .policy = conditions.policy,
                              .isolation = hello.isolation,
                              .max_threads = hello.max_threads,
                              .labels = hello.labels,
                              .held = std::move(hello.held),
                              .capabilities = std::move(hello.capabilities)});
}

std::size_t Harness::Workers(wire::WorkerState state) const {
  return FleetModelOf(core->state(), now).Workers(state);
}

void Harness::Say(const PeerId& peer, wire::WorkerMessage message) {
  Give(WorkerSaid{.peer = peer, .message = std::move(message), .key = keys[peer]});
}

void Harness::Heartbeat(const PeerId& peer, std::vector<LeaseId> held, wire::DrainState drain) {
  Say(peer, wire::Heartbeat{.drain = drain, .held = std::move(held)});
}

Evaluation Harness::GoodEvaluation(const wire::Lease& lease) const {
  const Resolution& resolution = disk.admissions.at(lease.job);
  const auto& measure = std::get<ResolvedTask>(resolution);
  const DeviceKind device =
      measure.placement == Placement::kCuda ? DeviceKind::kCuda : DeviceKind::kCpu;
  Evaluation evaluation = Measured(measure.subject.bytes[0], device);
  evaluation.conditions->threads = lease.spec.threads;
  evaluation.conditions->cache = lease.spec.cache;
  return evaluation;
}

void Harness::Report(const PeerId& peer, const wire::Lease& lease) {
  Evaluation evaluation = GoodEvaluation(lease);
  evaluation.conditions->hardware.host = hosts_[peer];
  ReportEvaluation(peer, lease, std::move(evaluation));
}

void Harness::ReportFailure(const PeerId& peer, const wire::Lease& lease, FailureCode code) {
  Evaluation evaluation;
  evaluation.verdict = Failure{.code = code, .message = "test"};
  ReportEvaluation(peer, lease, std::move(evaluation));
}

void Harness::ReportEvaluation(const PeerId& peer, const wire::Lease& lease,
                               Evaluation evaluation) {
  wire::Reports reports;
  reports.reports.push_back(
      {.lease = lease.lease, .job = lease.job, .evaluation = std::move(evaluation)});
  Say(peer, std::move(reports));
}

void Harness::Write() {
  while (!unwritten.empty()) WriteOne();
}

void Harness::WriteOne() {
  const Persist persist = std::move(unwritten.front());
  unwritten.pop_front();
  for (const storage::Write& write : persist.writes) {
    disk.Apply(write);
    const auto* accepted = std::get_if<storage::JobsAccepted>(&write);
    if (accepted == nullptr) continue;
    const auto& admissions = admitted_[accepted->request_digest];
    if (admissions.size() < accepted->jobs.size()) continue;  // one of the core's own batches
    for (std::uint32_t i = 0; i < accepted->jobs.size(); ++i) {
      disk.admissions[{.batch = accepted->batch, .index = accepted->first_index + i}] =
          admissions[i];
    }
  }
  Give(Persisted{{persist.token}});
}

void Harness::RefuseWrites(FailureCode code) {
  std::deque<Persist> waiting;
  std::swap(waiting, unwritten);
  std::deque<Persist> kept;
  for (Persist& persist : waiting) {
    if (persist.when_full == WhenFull::kRetry) {
      kept.push_back(std::move(persist));
    } else {
      Give(PersistRefused{.token = persist.token, .failure = {.code = code, .message = "no room"}});
    }
  }
  unwritten.insert(unwritten.begin(), std::make_move_iterator(kept.begin()),
                   std::make_move_iterator(kept.end()));
}

void Harness::Pass(Nanos time) {
  for (Nanos passed{0}; passed < time; passed += milliseconds(100)) {
    now.instant += milliseconds(100);
    now.wall += milliseconds(100);
    Give(Tick{});
  }
}

std::vector<wire::Lease> Harness::TakeLeases(const PeerId& worker) {
  std::vector<wire::Lease> all;
  while (auto leases = TakeCommand<wire::Leases>(worker)) {
    all.insert(all.end(), leases->leases.begin(), leases->leases.end());
  }
  return all;
}

bool Harness::TakePage(const PeerId& peer, std::uint64_t number) {
  return std::erase_if(pages, [&](const SendOutcomes& page) {
           return page.peer == peer && page.number == number;
         }) > 0;
}

wire::Accepted Harness::MustAccept(const PeerId& peer, std::uint64_t number) {
  auto accepted = TakeReply<wire::Accepted>(peer, number);
  LF_CHECK(accepted, "request {} of {} was not accepted", number, peer);
  return *accepted;
}

const Outcome& Harness::OutcomeOf(JobId job) const {
  LF_CHECK(disk.outcomes.contains(job), "job {} has no outcome", job);
  return disk.outcomes.at(job);
}

}  // namespace loopfleet::coordinator
