#pragma once
// Client: a connection to a coordinator. Submits jobs, follows their outcomes, asks about the
// fleet.
//
// Not thread-safe: one Client per thread. Every call ends: with an answer, with the coordinator's
// refusal, or when a bound in ClientOptions is reached. A restart of the coordinator is waited out:
// unanswered requests are sent again. Since each submission carries its own id, sending it again
// never submits twice (promise I4).

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
//   kNotFound     the coordinator's database was replaced since this client connected: what it
//                 submitted may be gone. So ends every later call
//   kInvalid      `refusal` set: the coordinator refused the request, or this key (UNAUTHENTICATED)
//   kFull         `refusal` set: likewise, but the request may succeed later
struct CallError {
  ErrorKind kind = ErrorKind::kSystem;
  std::string message;
  std::optional<Failure> refusal;
};

template <class T>
using Answer = std::expected<T, CallError>;

struct ClientOptions {
  std::string address;                             // the coordinator's endpoint for clients
  std::optional<wire::PeerKeys> keys;              // none: only this machine can be reached
  std::string program = "loopfleet";               // for the coordinator's log
  Uuid id = Uuid::Random();                        // the same across reconnects
  Nanos connect_limit = std::chrono::seconds(10);  // silence before the first answer
  Nanos silence_limit = std::chrono::seconds(60);  // silence later: long enough for a restart
  Nanos resend_after = std::chrono::seconds(1);    // a request unanswered for this long is repeated
  Nanos busy_limit = std::chrono::minutes(10);     // how long to repeat a request refused as full
  std::optional<Instant> deadline;                 // no call waits beyond this
  const std::atomic<bool>* stop = nullptr;         // set by another thread to end every wait soon
  // Told once, from within the call, why a call takes longer than `told_after`: no answer comes, or
  // the coordinator is full.
  std::function<void(const std::string& why)> on_wait;
  Nanos told_after = std::chrono::seconds(5);
};

class Client {
 public:
  // Connects and exchanges hello and welcome.
  static Answer<Client> Connect(const ClientOptions& options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Submits any number of jobs as one batch, in bounded messages. On disk when this returns.
  Answer<BatchId> Submit(std::span<const JobSpec> jobs);
  // Sends one message of a submission; see BatchWriter. While the coordinator is full (BUSY,
  // QUOTA_EXCEEDED), sends it again until busy_limit.
  Answer<wire::Accepted> SubmitMessage(wire::SubmitJobs message);

  // Outcomes after `after_sequence`, waiting at most `wait` for a first one; may be none.
  Answer<wire::OutcomePage> Fetch(BatchId batch, std::uint64_t after_sequence, Nanos wait);
  // Fetches page by page until the last job of the batch has its outcome. Each outcome is passed
  // once, in the order of finishing. A page may be empty; then only the counts are new.
  using OnPage = std::function<void(const wire::OutcomePage&)>;
  Answer<wire::BatchInfo> Follow(BatchId batch, const OnPage& on_page);

  // Submit and Follow in one.
  using OnOutcome = std::function<void(const Outcome&)>;
  Answer<wire::BatchInfo> Evaluate(std::span<const JobSpec> jobs, const OnOutcome& on_outcome);

  Answer<wire::BatchInfo> Cancel(BatchId batch);
  Answer<wire::BatchList> ListBatches(std::uint32_t max_batches);
  Answer<wire::BatchInfo> ShowBatch(BatchId batch);  // 0: the newest of any client
  Answer<wire::JobInfo> ShowJob(JobId job);
  Answer<wire::JobExplanation> ExplainJob(JobId job);
  Answer<wire::WorkerList> ListWorkers();
  // Returns the workers concerned, in their new state. On disk when this returns.
  Answer<wire::WorkerList> SetDrain(const wire::SetDrain& set);
  // Stops the stored results of these jobs from answering other jobs; on disk when this returns.
  // Needs an admin's key if the fleet uses keys. Any number of jobs, in bounded messages.
  Answer<void> FlagResults(std::span<const JobId> jobs, const std::string& reason);
  // The fleet's counts, and its events after a given one.
  Answer<wire::FleetInfo> ShowFleet(const wire::ShowFleet& show);
  // The fastest known schedules of a program, the fastest first; none: none is known.
  Answer<wire::JobList> FindBest(const wire::FindBest& find);
  // Sends a program's bitcode, of which the coordinator may hold a part already, and returns its
  // URI, bitcode://sha256/...; it is on disk and its hash was checked there. At most
  // wire::kMaxBlobBytes.
  Answer<std::string> AddProgram(std::string_view bitcode);
  // The bytes of an observed value, whose SHA-256 was checked. kNotFound: the coordinator keeps
  // them no more, or never did; the job can be submitted again, fresh.
  Answer<std::string> GetBlob(const std::string& sha256);
  // Outcomes of all batches, page by page.
  Answer<wire::OutcomeList> ListOutcomes(const wire::ListOutcomes& list);

  // After a stop or a deadline: allows further calls, for at most `limit` from now.
  void AllowFinalCalls(Nanos limit);

  const std::string& coordinator() const { return coordinator_; }  // its name
  std::uint64_t epoch() const { return epoch_; }                   // number of its starts

 private:
  Client(const ClientOptions& options, std::unique_ptr<wire::Context> context, wire::Dealer dealer);

  // Sends `message` and waits for its reply. `expected`: how long the reply may take by design, as
  // in a long poll.
  Answer<wire::CoordinatorMessage> Call(const wire::ClientMessage& message, Nanos expected);
  // Repeats the request while the reply is a temporary refusal, up to busy_limit.
  Answer<wire::CoordinatorMessage> Insist(const wire::ClientMessage& message, Nanos expected);
  Answer<wire::CoordinatorMessage> Exchange(const wire::ClientMessage& message, Nanos expected);
  template <class T>
  Answer<T> Ask(const wire::ClientMessage& message, Nanos expected);
  Answer<void> Greet();
  // Notes who welcomed it: an error if that is a coordinator with another database than before.
  Answer<void> Meet(const wire::Welcome& welcome);
  std::string HelloFrame();
  // The reply to request `number`, if it has arrived.
  Answer<std::optional<wire::CoordinatorMessage>> ReceiveReplyTo(std::uint64_t number);
  std::optional<CallError> CheckStop() const;
  // Checks for a failed handshake: an error if the coordinator refuses this key.
  Answer<void> CheckHandshake();
  CallError Silence() const;
  CallError Replaced() const;
  Answer<void> Pause(Nanos duration);

  ClientOptions options_;
  SystemClock clock_;
  std::unique_ptr<wire::Context> context_;  // outlives dealer_
  wire::Dealer dealer_;
  Nanos silence_limit_;
  std::uint64_t last_number_ = 0;
  std::string coordinator_;
  std::uint64_t epoch_ = 0;
  wire::ProtocolVersion version_;  // the coordinator's
  Uuid incarnation_;               // of its database; nil: not told yet
  bool was_replaced_ = false;      // another incarnation has answered
  bool handshake_failed_ = false;  // since the last answer
};

}  // namespace loopfleet::client
