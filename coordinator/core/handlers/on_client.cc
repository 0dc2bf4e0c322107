#include "coordinator/core/handlers/on_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "common/base/counted.h"
#include "coordinator/core/dispatch/bulk_completion.h"
#include "coordinator/core/handlers/client_quota.h"
#include "coordinator/core/handlers/explanation.h"
#include "coordinator/core/handlers/on_drain.h"
#include "coordinator/core/handlers/on_worker.h"
#include "coordinator/core/handlers/show_fleet.h"
#include "coordinator/core/handlers/worker_info.h"
#include "coordinator/core/rules/permission.h"
#include "coordinator/core/state/client_reply.h"

namespace loopfleet::coordinator {
namespace {

void CancelWholeBatch(Transaction& tx, Batch& batch, const Asker& asker) {
  batch.open = false;
  batch.cancelled = true;
  batch.cancelling = true;
  batch.cancel_askers[asker.peer] = asker.number;
  // On disk before the first job's outcome: whatever happens then, it stays cancelled.
  tx.writes.push_back(storage::BatchCancelled{.batch = batch.id});
  tx.commit.cancels = batch.id;
  StartCancelling(tx, batch);
}

// Why this client may not make the request; empty if it may.
std::optional<Failure> WhyForbidden(const State& state, const ClientAsked& event) {
  const Need need = NeedOf(event.question);
  auto ownership = Ownership::kAnothers;
  std::string what = "this request";
  if (const auto* cancel = std::get_if<wire::CancelBatch>(&event.question)) {
    const Batch* batch = state.batches.Find(cancel->batch);
    const auto client = state.clients.ClientOf(event.peer, event.key);
    if (event.role == wire::Role::kClient && !client) {
      return Failure{.code = FailureCode::kUnauthenticated, .message = "say hello first"};
    }
    // A batch that is over cannot be changed any more; reporting that only takes reading.
    if (batch == nullptr || batch->client == client) ownership = Ownership::kOwn;
    what = fmt::format("batch {} is another client's: to cancel it", cancel->batch);
  }
  if (IsPermitted(event.role, need, ownership)) return std::nullopt;
  return Failure{.code = FailureCode::kForbidden,
                 .message = fmt::format("{} needs the key of an admin", what)};
}

struct QuestionVisitor {
  Transaction& tx;
  Asker asker;
  const KeyText& key;
  Uuid payer;  // the client that the request is charged to
  const std::optional<Failure>& no_outcome;

  void operator()(const wire::ClientHello& hello) const {
    State& state = tx.state;
    if (hello.version.major != wire::kProtocolVersion.major) {
      return Refuse(tx, asker, FailureCode::kVersionMismatch,
                    fmt::format("the client speaks protocol {}.{}, the coordinator {}.{}",
                                hello.version.major, hello.version.minor,
                                wire::kProtocolVersion.major, wire::kProtocolVersion.minor));
    }
    state.clients.Greet(asker.peer, {.client = hello.client, .key = key}, tx.now.instant,
                        {.max_connections = state.limits.max_clients,
                         .max_connections_per_client = state.limits.max_connections_per_client});
    Reply(tx, asker,
          wire::Welcome{
              .coordinator = state.name, .epoch = state.epoch, .incarnation = state.incarnation});
  }

  void operator()(const wire::FetchOutcomes& fetch) const {
    State& state = tx.state;
    Batch* batch = state.batches.Find(fetch.batch);
    if (batch != nullptr && batch->client == state.clients.ClientOf(asker.peer, key)) {
      batch->client_heard_at = tx.now.instant;
    }
    const Nanos wait =
        std::min<Nanos>(std::chrono::milliseconds(fetch.wait_ms), state.limits.max_fetch_wait);
    Waiter waiter{.asker = asker,
                  .client = payer,
                  .key = key,
                  .fetch = fetch,
                  .deadline = tx.now.instant + wait};
    // Not in the table: over or unknown. Storage can tell.
    if (batch == nullptr || batch->durable > fetch.after_sequence || wait == Nanos{0}) {
      return ReplyToWaiter(tx, waiter);
    }
    if (!state.long_polls.Contains(asker)) {
      if (state.long_polls.CountOf(payer) >= state.limits.max_waiters_per_client) {
        return Refuse(
            tx, asker, FailureCode::kQuotaExceeded,
            fmt::format("{} waiting (the limit)",
                        Counted(state.limits.max_waiters_per_client, "request of this client is",
                                "requests of this client are")));
      }
      if (state.long_polls.size() >= state.limits.max_waiters) {
        return Refuse(tx, asker, FailureCode::kBusy,
                      fmt::format("{} waiting (the limit)",
                                  Counted(state.limits.max_waiters, "request is", "requests are")));
      }
    }
    state.long_polls.Add(std::move(waiter));
  }

  void operator()(const wire::CancelBatch& cancel) const {
    Batch* batch = tx.state.batches.Find(cancel.batch);
    // No client knows of a batch yet whose first message is on its way to disk.
    const bool settled = batch == nullptr || batch->cancelled ||
                         batch->accepting == Accepting::kFirstMessage ||
                         (!batch->open && batch->finished == batch->job_count);
    if (batch != nullptr && batch->cancelling) {  // repeated: storage does not know it yet
      batch->cancel_askers[asker.peer] = asker.number;
      return;
    }
    if (settled) return ReplyWithBatch(tx, asker, cancel.batch);
    CancelWholeBatch(tx, *batch, asker);
  }

  void operator()(const wire::ListBatches& list) const {
    tx.effects.push_back(
        AnswerFromStorage{.peer = asker.peer, .number = asker.number, .question = list});
  }
  void operator()(const wire::ShowBatch& show) const { ReplyWithBatch(tx, asker, show.batch); }

  void operator()(const wire::ShowJob& show) const {
    SendJob send{.peer = asker.peer, .number = asker.number, .job = show.job};
    if (const Job* job = tx.state.jobs.Find(show.job)) {
      send.live = LiveJob{.attempts = job->attempts()};
      if (const auto* leased = std::get_if<Leased>(&job->progress)) {
        const LeaseRecord* lease = tx.state.leases.Find(leased->lease);
        send.live->state = wire::JobState::kLeased;
        send.live->worker = tx.state.workers.Find(lease->worker)->facts.name;
      }
    } else if (tx.state.recovering && tx.state.batches.Find(show.job.batch) != nullptr) {
      send.live = LiveJob{};  // not loaded yet
    }
    tx.effects.push_back(std::move(send));
  }

  void operator()(const wire::ExplainJob& explain) const {
    if (const Job* job = tx.state.jobs.Find(explain.job)) {
      return Reply(tx, asker, Explain(tx.state, *job, tx.now.instant));
    }
    const bool is_to_come =
        tx.state.recovering && tx.state.batches.Find(explain.job.batch) != nullptr;
    tx.effects.push_back(
        AnswerFromStorage{.peer = asker.peer,
                          .number = asker.number,
                          .question = explain,
                          .job = is_to_come ? Unknown::kMayBeToCome : Unknown::kIsOver});
  }

  void operator()(const wire::ListWorkers&) const {
    wire::WorkerList list;
    for (const auto& [id, worker] : tx.state.workers.all()) {
      list.workers.push_back(WorkerInfoOf(worker, tx.now.instant));
    }
    Reply(tx, asker, std::move(list));
  }

  void operator()(const wire::SetDrain& set) const {
    if (!tx.state.clients.ClientOf(asker.peer, key)) {
      return Refuse(tx, asker, FailureCode::kUnauthenticated, "say hello first");
    }
    OnSetDrain(tx, asker, set);
  }

  void operator()(const wire::FlagResults& flag) const {
    if (!tx.state.clients.ClientOf(asker.peer, key)) {
      return Refuse(tx, asker, FailureCode::kUnauthenticated, "say hello first");
    }
    for (const JobId job : flag.jobs) {
      if (tx.state.jobs.Find(job) != nullptr) {
        return Refuse(tx, asker, FailureCode::kNotFound,
                      fmt::format("job {} has no outcome to flag yet", job));
      }
    }
    if (no_outcome) return Refuse(tx, asker, no_outcome->code, no_outcome->message);
    for (const JobId job : flag.jobs) {
      tx.writes.push_back(
          storage::ResultDoubted{.job = job, .flagged_at = tx.now.wall, .reason = flag.reason});
    }
    tx.commit.flags.emplace_back(
        asker, wire::Accepted{.batch = flag.jobs.front().batch,
                              .first_index = flag.jobs.front().index,
                              .job_count = static_cast<std::uint32_t>(flag.jobs.size())});
  }

  void operator()(wire::BlobPiece& piece) const {
    if (!HasSaidHello()) return;
    tx.effects.push_back(KeepBlob{.from = {.peer = asker.peer, .number = asker.number},
                                  .client = payer,
                                  .piece = std::move(piece)});
  }
  void operator()(const wire::BlobWanted& wanted) const {
    if (!HasSaidHello()) return;
    tx.effects.push_back(
        SendBlob{.to = {.peer = asker.peer, .number = asker.number}, .wanted = wanted});
  }
  bool HasSaidHello() const {
    if (tx.state.clients.ClientOf(asker.peer, key)) return true;
    Refuse(tx, asker, FailureCode::kUnauthenticated, "say hello first");
    return false;
  }

  void operator()(const wire::ListOutcomes& list) const { Read(list); }
  void operator()(const wire::FindBest& find) const { Read(find); }
  template <class Question>
  void Read(const Question& question) const {
    tx.effects.push_back(AnswerFromStorage{.peer = asker.peer,
                                           .number = asker.number,
                                           .payer = {.client = payer, .key = key},
                                           .question = question});
  }

  void operator()(const wire::ShowFleet& show) const {
    tx.effects.push_back(SendFleet{.peer = asker.peer,
                                   .number = asker.number,
                                   .question = show,
                                   .fleet = FleetModelOf(tx.state, tx.now, WorkerDetail::kHealth)});
  }

  void operator()(const wire::UnknownMember& unknown) const {
    Refuse(tx, asker, FailureCode::kUnsupported,
           fmt::format("requests of kind {} are not known here", unknown.member));
  }
};

}  // namespace

void OnClientAsked(Transaction& tx, ClientAsked event) {
  const Asker asker{.peer = event.peer, .number = event.number};
  tx.state.clients.Hear(event.peer, event.key, tx.now.instant);
  const Uuid payer = tx.state.clients.PayerOf(event.peer, event.key);
  if (ExceedsRequestRate(tx, asker, payer)) return;
  if (auto why = WhyForbidden(tx.state, event)) {
    return Refuse(tx, asker, why->code, std::move(why->message));
  }
  std::visit(QuestionVisitor{tx, asker, event.key, payer, event.no_outcome}, event.question);
}

void OnKeysRevoked(Transaction& tx, const KeysRevoked& event) {
  const std::vector<PeerId> peers = tx.state.clients.PeersWith(event.keys);
  for (const PeerId& peer : peers) {
    OnClientUnreachable(tx, {.peer = peer});
    tx.state.clients.ForgetAsker(peer);
  }
  tx.state.batches.ForgetCancelAskers({peers.begin(), peers.end()});
  tx.state.long_polls.RemoveByKeys(event.keys);  // these connections may have sent no hello
  RemoveWorkersWith(tx, event.keys);
}

void OnClientUnreachable(Transaction& tx, const ClientUnreachable& event) {
  tx.state.long_polls.RemovePeer(event.peer);
  tx.state.clients.RemovePeer(event.peer);
}

void AnswerExpiredWaiters(Transaction& tx) {
  for (const Waiter& waiter : tx.state.long_polls.TakeExpired(tx.now.instant)) {
    ReplyToWaiter(tx, waiter);
  }
}

}  // namespace loopfleet::coordinator
