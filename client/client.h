#pragma once
// Client: a connection to a coordinator. Submits jobs, follows their outcomes, asks about the
// fleet.
//
// Not thread-safe: one thread, one Client. Every call ends: with an answer, with the coordinator's
// refusal, or when one of the bounds in ClientOptions is reached. A coordinator that is restarted
// is waited for: requests are sent again after a silence, and since a submission carries an id of
// its own, sending it again never submits twice (promise I4).

#include <atomic>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "common/wire/message.h"
#include "common/wire/transport/dealer.h"

namespace loopfleet::client {

// Why a call has no answer.
//   kUnavailable  the coordinator was silent for longer than the limit
//   kTimeout      the caller's deadline passed
//   kClosed       the caller asked to stop
//   kCorrupt      the answer could not be read
//   kInvalid, kFull, kUnavailable with `refusal` set: the coordinator said no, and why; also its
//     door did (UNAUTHENTICATED), which does not let this key in
struct CallError {
  ErrorKind kind = ErrorKind::kSystem;
  std::string message;
  std::optional<Failure> refusal;
};

template <class T>
using Answer = std::expected<T, CallError>;

struct ClientOptions {
  std::string address;                             // the coordinator's endpoint for clients
  std::optional<wire::PeerKeys> keys;              // without, only this machine can be reached
  std::string program = "loopfleet";               // for the coordinator's log
  Uuid id = Uuid::Random();                        // the same over reconnects
  Nanos connect_limit = std::chrono::seconds(10);  // silence before the first answer
  Nanos silence_limit = std::chrono::seconds(60);  // silence later on: a restart takes this long
  Nanos resend_after = std::chrono::seconds(1);    // a request unanswered for this long is repeated
  Nanos busy_limit = std::chrono::minutes(10);  // how long to go on asking where there is no room
  std::optional<Instant> deadline;              // nothing is waited for beyond this
  const std::atomic<bool>* stop = nullptr;      // set by others to end every wait soon
};

class Client {
 public:
  // Connects and is welcomed.
  static Answer<Client> Connect(const ClientOptions& options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Jobs of any number, sent in bounded messages to one batch. On disk when this returns.
  Answer<BatchId> Submit(std::span<const JobSpec> jobs);
  // One message of a submission: see BatchWriter. A full queue (BUSY, QUOTA_EXCEEDED) is offered
  // the jobs again until busy_limit.
  Answer<wire::Accepted> SubmitMessage(wire::SubmitJobs message);

  // Outcomes after `after_sequence`, waiting at most `wait` for a first one; may be none.
  Answer<wire::OutcomePage> Fetch(BatchId batch, std::uint64_t after_sequence, Nanos wait);
  // Fetches page by page until the last job of the batch has its outcome. Each outcome is handed
  // over once, in the order of finishing; a page may be empty (then only the counts are news).
  using OnPage = std::function<void(const wire::OutcomePage&)>;
  Answer<wire::BatchInfo> Follow(BatchId batch, const OnPage& on_page);

  // Submit and Follow in one.
  using OnOutcome = std::function<void(const Outcome&)>;
  Answer<wire::BatchInfo> Evaluate(std::span<const JobSpec> jobs, const OnOutcome& on_outcome);

  Answer<wire::BatchInfo> Cancel(BatchId batch);
  Answer<wire::BatchList> ListBatches(std::uint32_t max_batches);
  Answer<wire::BatchInfo> ShowBatch(BatchId batch);  // "none": the newest of a client
  Answer<wire::JobInfo> ShowJob(JobId job);
  Answer<wire::JobExplanation> ExplainJob(JobId job);
  Answer<wire::WorkerList> ListWorkers();
  // Those that it concerns, as they are then; on disk when this returns.
  Answer<wire::WorkerList> SetDrain(const wire::SetDrain& set);
  // What was stored for these jobs answers nothing any more; on disk when this returns. Needs an
  // admin's key where there are keys. Any number of jobs, in bounded messages.
  Answer<void> FlagResults(std::span<const JobId> jobs, const std::string& reason);
  // The fleet in numbers, and its events after one.
  Answer<wire::FleetInfo> ShowFleet(const wire::ShowFleet& show);
  // Outcomes of all batches, page by page.
  Answer<wire::OutcomeList> ListOutcomes(const wire::ListOutcomes& list);

  // After a stop or a deadline: a few last calls may be made, for at most `limit` from now.
  void AllowGoodbye(Nanos limit);

  const std::string& coordinator() const { return coordinator_; }  // its name
  std::uint64_t epoch() const { return epoch_; }                   // counts its starts

 private:
  Client(const ClientOptions& options, std::unique_ptr<wire::Context> context, wire::Dealer dealer);

  // Sends `message` and waits for its reply: `expected` is how long the coordinator may rightly
  // take.
  Answer<wire::CoordinatorMessage> Call(const wire::ClientMessage& message, Nanos expected);
  // Asks again, up to busy_limit, while the answer is a refusal that passes.
  Answer<wire::CoordinatorMessage> Insist(const wire::ClientMessage& message, Nanos expected);
  Answer<wire::CoordinatorMessage> Exchange(const wire::ClientMessage& message, Nanos expected);
  template <class T>
  Answer<T> Ask(const wire::ClientMessage& message, Nanos expected);
  Answer<void> Greet();
  std::string HelloFrame();
  // The reply to request `number`, if it is among what has arrived.
  Answer<std::optional<wire::CoordinatorMessage>> ReceiveReplyTo(std::uint64_t number);
  std::optional<CallError> MustStop() const;
  // What the door has said since the last look: an error if it does not let this key in.
  Answer<void> HearDoor();
  CallError Silence() const;
  Answer<void> Pause(Nanos duration);

  ClientOptions options_;
  SystemClock clock_;
  std::unique_ptr<wire::Context> context_;  // outlives dealer_
  wire::Dealer dealer_;
  Nanos silence_limit_;
  std::uint64_t last_number_ = 0;
  std::string coordinator_;
  std::uint64_t epoch_ = 0;
  bool handshake_failed_ = false;  // since the last answer
};

}  // namespace loopfleet::client
