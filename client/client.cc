#include "client/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "common/base/sha256.h"
#include "common/wire/codec/codec.h"
#include "common/wire/transport/poller.h"

namespace loopfleet::client {
namespace {

constexpr Nanos kSlice = std::chrono::milliseconds(50);  // how soon a stop is noticed
constexpr Nanos kLongPoll = std::chrono::seconds(1);  // how long a fetch waits at the coordinator
constexpr Nanos kShortestRetry = std::chrono::milliseconds(10);
constexpr Nanos kLongestRetry = std::chrono::seconds(1);

double Seconds(Nanos duration) { return std::chrono::duration<double>(duration).count(); }

CallError Refusal(const wire::Refused& refused) {
  const FailureInfo& info = InfoOf(refused.failure.code);
  std::string message = fmt::format(
      "{}: {}", info.name,
      refused.failure.message.empty() ? std::string(info.advice) : refused.failure.message);
  if (refused.retry_after_ms > 0) {
    message += fmt::format("; try again in {:.2g} s", refused.retry_after_ms / 1000.0);
  }
  return CallError{.kind = info.policy.is_retryable ? ErrorKind::kFull : ErrorKind::kInvalid,
                   .message = std::move(message),
                   .refusal = refused.failure};
}

}  // namespace

Client::Client(const ClientOptions& options, std::unique_ptr<wire::Context> context,
               wire::Dealer dealer)
    : options_(options),
      context_(std::move(context)),
      dealer_(std::move(dealer)),
      silence_limit_(options.connect_limit) {}

Client::Client(Client&&) noexcept = default;
Client::~Client() = default;

Client& Client::operator=(Client&& other) noexcept {
  // The old socket must be destroyed before its context.
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

Answer<Client> Client::Connect(const ClientOptions& options) {
  auto context = std::make_unique<wire::Context>();
  auto dealer = wire::Dealer::Connect(
      *context, options.address,
      {.keys = options.keys ? &*options.keys : nullptr, .watch_handshake = true});
  if (!dealer) {
    return std::unexpected(
        CallError{.kind = dealer.error().kind, .message = dealer.error().message});
  }
  Client client(options, std::move(context), *std::move(dealer));
  LF_TRY_VOID(client.Greet());
  client.silence_limit_ = options.silence_limit;
  return client;
}

std::string Client::HelloFrame() {
  return wire::Encode(wire::ClientRequest{
      .number = ++last_number_,
      .message = wire::ClientHello{.client = options_.id, .program = options_.program}});
}

Answer<void> Client::Greet() {
  LF_TRY(const auto reply,
         Insist(wire::ClientHello{.client = options_.id, .program = options_.program}, Nanos{0}));
  if (const auto* refused = std::get_if<wire::Refused>(&reply)) {
    return std::unexpected(Refusal(*refused));
  }
  const auto* welcome = std::get_if<wire::Welcome>(&reply);
  if (welcome == nullptr) {
    return std::unexpected(
        CallError{.kind = ErrorKind::kCorrupt,
                  .message = fmt::format("{} did not answer a hello with a welcome: is it a "
                                         "loopfleet coordinator's endpoint for clients?",
                                         options_.address)});
  }
  return Meet(*welcome);
}

Answer<void> Client::Meet(const wire::Welcome& welcome) {
  const bool is_told = !welcome.incarnation.is_nil();
  if (is_told && incarnation_.is_nil()) incarnation_ = welcome.incarnation;
  was_replaced_ |= is_told && welcome.incarnation != incarnation_;
  if (was_replaced_) return std::unexpected(Replaced());
  coordinator_ = welcome.coordinator;
  epoch_ = welcome.epoch;
  version_ = welcome.version;
  return {};
}

CallError Client::Replaced() const {
  return {.kind = ErrorKind::kNotFound,
          .message = fmt::format("the database of the coordinator at {} was replaced, probably by "
                                 "a restored snapshot: batches submitted after the snapshot are "
                                 "gone; connect again and look with `loopfleet batch list`",
                                 options_.address)};
}

std::optional<CallError> Client::CheckStop() const {
  if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) {
    return CallError{.kind = ErrorKind::kClosed, .message = "interrupted"};
  }
  if (options_.deadline && clock_.Now() >= *options_.deadline) {
    return CallError{.kind = ErrorKind::kTimeout, .message = "timed out"};
  }
  return std::nullopt;
}

Answer<void> Client::CheckHandshake() {
  const auto failure = dealer_.TakeHandshakeFailure();
  if (!failure) return {};
  handshake_failed_ = true;
  if (*failure == wire::Dealer::HandshakeFailure::kProtocolMismatch) return {};  // may be starting
  const wire::Principal self = options_.keys ? options_.keys->self : wire::Principal{};
  Failure refusal{
      .code = FailureCode::kUnauthenticated,
      .message = fmt::format("the coordinator at {} does not let the key of {} '{}' in: it has to "
                             "lie in authorized/{}s of the coordinator's keys directory",
                             options_.address, wire::NameOf(self.role), self.name,
                             wire::NameOf(self.role))};
  return std::unexpected(
      CallError{.kind = ErrorKind::kInvalid,
                .message = fmt::format("{}: {}", InfoOf(refusal.code).name, refusal.message),
                .refusal = std::move(refusal)});
}

CallError Client::Silence() const {
  const std::string_view why =
      !handshake_failed_ ? ""
      : options_.keys    ? "; it has no keys, or another one than the coordinator.key given here"
                         : "; it may want a key: see --keys";
  return {.kind = ErrorKind::kUnavailable,
          .message = fmt::format("no answer from the coordinator at {} for {:.3g} s{}",
                                 options_.address, Seconds(silence_limit_), why)};
}

void Client::AllowFinalCalls(Nanos limit) {
  options_.stop = nullptr;
  options_.deadline = clock_.Now() + limit;
}

Answer<std::optional<wire::CoordinatorMessage>> Client::ReceiveReplyTo(std::uint64_t number) {
  while (auto frame = dealer_.Receive()) {
    auto reply = wire::DecodeCoordinatorReply(*frame);
    if (!reply) {
      return std::unexpected(CallError{
          .kind = ErrorKind::kCorrupt,
          .message =
              fmt::format("the coordinator's answer cannot be read: {}", reply.error().message)});
    }
    if (const auto* welcome = std::get_if<wire::Welcome>(&reply->message)) {
      LF_TRY_VOID(Meet(*welcome));
    }
    // Number 0 answers a frame that could not be decoded, which must be the latest. Other numbers
    // are duplicate replies to resent requests, and replies to hellos.
    if (reply->number == number || reply->number == 0) return std::move(reply->message);
  }
  return std::nullopt;
}

Answer<wire::CoordinatorMessage> Client::Exchange(const wire::ClientMessage& message,
                                                  Nanos expected) {
  if (was_replaced_) return std::unexpected(Replaced());
  const std::uint64_t number = ++last_number_;
  const std::string frame = wire::Encode(wire::ClientRequest{.number = number, .message = message});
  wire::Poller poller;
  poller.Add(dealer_);
  bool sent = dealer_.Send(frame) == wire::SendResult::kSent;
  const Instant start = clock_.Now();
  Instant resend_at = start + expected + options_.resend_after;
  bool is_told = !options_.on_wait;
  while (true) {
    if (auto stopped = CheckStop()) return std::unexpected(*std::move(stopped));
    const Instant now = clock_.Now();
    if (now - start > expected + silence_limit_) {
      return std::unexpected(Silence());
    }
    if (!is_told && now - start > expected + options_.told_after) {
      is_told = true;
      options_.on_wait(fmt::format("no answer from the coordinator at {} yet; trying for {:.3g} s",
                                   options_.address, Seconds(silence_limit_)));
    }
    LF_TRY_VOID(CheckHandshake());
    if (!sent || now >= resend_at) {
      // A restarted coordinator does not know this client: send a hello first.
      const bool greeted = dealer_.Send(HelloFrame()) == wire::SendResult::kSent;
      sent = greeted && dealer_.Send(frame) == wire::SendResult::kSent;
      resend_at = now + expected + options_.resend_after;
    }
    poller.Wait(kSlice);
    LF_TRY(auto reply, ReceiveReplyTo(number));
    if (reply) {
      handshake_failed_ = false;
      return *std::move(reply);
    }
  }
}

Answer<wire::CoordinatorMessage> Client::Insist(const wire::ClientMessage& message,
                                                Nanos expected) {
  const Instant start = clock_.Now();
  const Instant give_up = start + options_.busy_limit;
  bool is_told = !options_.on_wait;
  std::string last_word;
  // Adds the last refusal to a timeout's message.
  const auto told = [&](CallError error) {
    if (error.kind == ErrorKind::kTimeout && !last_word.empty()) {
      error.message += fmt::format("; the coordinator said {}", last_word);
    }
    return std::unexpected(std::move(error));
  };
  while (true) {
    auto reply = Exchange(message, expected);
    if (!reply) return told(std::move(reply).error());
    const auto* refused = std::get_if<wire::Refused>(&*reply);
    if (refused == nullptr || !InfoOf(refused->failure.code).policy.is_passing ||
        clock_.Now() >= give_up)
      return reply;
    last_word = Refusal(*refused).message;
    if (!is_told && clock_.Now() - start > options_.told_after) {
      is_told = true;
      options_.on_wait(fmt::format("the coordinator said {}; trying again for {:.3g} s", last_word,
                                   Seconds(options_.busy_limit)));
    }
    auto paused = Pause(std::clamp<Nanos>(std::chrono::milliseconds(refused->retry_after_ms),
                                          kShortestRetry, kLongestRetry));
    if (!paused) return told(std::move(paused).error());
  }
}

Answer<wire::CoordinatorMessage> Client::Call(const wire::ClientMessage& message, Nanos expected) {
  LF_TRY(auto reply, Insist(message, expected));
  const auto* refused = std::get_if<wire::Refused>(&reply);
  if (refused != nullptr && refused->failure.code == FailureCode::kUnauthenticated) {
    // A restarted coordinator needs a hello first.
    LF_TRY_VOID(Greet());
    LF_TRY(reply, Insist(message, expected));
  }
  return reply;
}

template <class T>
Answer<T> Client::Ask(const wire::ClientMessage& message, Nanos expected) {
  LF_TRY(auto reply, Call(message, expected));
  if (auto* answer = std::get_if<T>(&reply)) return std::move(*answer);
  if (const auto* refused = std::get_if<wire::Refused>(&reply)) {
    return std::unexpected(Refusal(*refused));
  }
  return std::unexpected(CallError{.kind = ErrorKind::kCorrupt,
                                   .message = "the coordinator's answer is of another kind than "
                                              "the question: are both of one version?"});
}

Answer<void> Client::Pause(Nanos duration) {
  const Instant end = clock_.Now() + duration;
  while (clock_.Now() < end) {
    if (auto stopped = CheckStop()) return std::unexpected(*std::move(stopped));
    std::this_thread::sleep_for(std::min(kSlice, Nanos(end - clock_.Now())));
  }
  return {};
}

Answer<wire::Accepted> Client::SubmitMessage(wire::SubmitJobs message) {
  // It would pass over a field that it does not know, and answer another question.
  for (const JobSpec& job : message.jobs) {
    const std::uint16_t needed = wire::MinorVersionFor(job);
    if (needed <= version_.minor) continue;
    return std::unexpected(
        Refusal({.failure = {.code = FailureCode::kUnsupported,
                             .message = fmt::format("the job needs protocol 1.{}, and the "
                                                    "coordinator at {} speaks 1.{}: upgrade it",
                                                    needed, options_.address, version_.minor)}}));
  }
  return Ask<wire::Accepted>(std::move(message), Nanos{0});
}

Answer<wire::OutcomePage> Client::Fetch(BatchId batch, std::uint64_t after_sequence, Nanos wait) {
  const auto wait_ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
  return Ask<wire::OutcomePage>(wire::FetchOutcomes{.batch = batch,
                                                    .after_sequence = after_sequence,
                                                    .wait_ms = static_cast<std::uint32_t>(wait_ms)},
                                wait);
}

Answer<wire::BatchInfo> Client::Follow(BatchId batch, const OnPage& on_page) {
  std::uint64_t after = 0;
  while (true) {
    LF_TRY(const auto page, Fetch(batch, after, kLongPoll));
    if (!page.outcomes.empty()) {
      if (page.outcomes.front().sequence != after + 1) {
        return std::unexpected(CallError{
            .kind = ErrorKind::kCorrupt,
            .message =
                fmt::format("outcomes of batch {} came with a gap after number {}", batch, after)});
      }
      after = page.outcomes.back().sequence;
    }
    on_page(page);
    const wire::BatchInfo& info = page.batch;
    if (info.state != wire::BatchState::kOpen && info.finished == info.job_count &&
        after >= info.finished) {
      return info;
    }
  }
}

Answer<wire::BatchInfo> Client::Evaluate(std::span<const JobSpec> jobs,
                                         const OnOutcome& on_outcome) {
  LF_TRY(const BatchId batch, Submit(jobs));
  return Follow(batch, [&](const wire::OutcomePage& page) {
    for (const Outcome& outcome : page.outcomes) on_outcome(outcome);
  });
}

Answer<wire::BatchInfo> Client::Cancel(BatchId batch) {
  return Ask<wire::BatchInfo>(wire::CancelBatch{.batch = batch}, Nanos{0});
}

Answer<wire::BatchList> Client::ListBatches(std::uint32_t max_batches) {
  return Ask<wire::BatchList>(wire::ListBatches{.max_batches = max_batches}, Nanos{0});
}

Answer<wire::BatchInfo> Client::ShowBatch(BatchId batch) {
  return Ask<wire::BatchInfo>(wire::ShowBatch{.batch = batch}, Nanos{0});
}

Answer<wire::JobInfo> Client::ShowJob(JobId job) {
  return Ask<wire::JobInfo>(wire::ShowJob{.job = job}, Nanos{0});
}

Answer<wire::JobExplanation> Client::ExplainJob(JobId job) {
  return Ask<wire::JobExplanation>(wire::ExplainJob{.job = job}, Nanos{0});
}

Answer<wire::WorkerList> Client::ListWorkers() {
  return Ask<wire::WorkerList>(wire::ListWorkers{}, Nanos{0});
}

Answer<wire::WorkerList> Client::SetDrain(const wire::SetDrain& set) {
  return Ask<wire::WorkerList>(set, Nanos{0});
}

Answer<void> Client::FlagResults(std::span<const JobId> jobs, const std::string& reason) {
  while (!jobs.empty()) {
    const auto some = jobs.first(std::min<std::size_t>(jobs.size(), wire::kMaxFlagsPerMessage));
    LF_TRY_VOID(Ask<wire::Accepted>(
        wire::FlagResults{.jobs = {some.begin(), some.end()}, .reason = reason}, Nanos{0}));
    jobs = jobs.subspan(some.size());
  }
  return {};
}

Answer<wire::FleetInfo> Client::ShowFleet(const wire::ShowFleet& show) {
  return Ask<wire::FleetInfo>(show, Nanos{0});
}

Answer<wire::JobList> Client::FindBest(const wire::FindBest& find) {
  return Ask<wire::JobList>(find, Nanos{0});
}

Answer<std::string> Client::AddProgram(std::string_view bitcode) {
  constexpr int kMostSetbacks = 3;
  const auto refuse = [](std::string message) {
    return std::unexpected(CallError{.kind = ErrorKind::kInvalid, .message = std::move(message)});
  };
  if (bitcode.empty() || bitcode.size() > wire::kMaxBlobBytes) {
    return refuse(
        fmt::format("a program of {} bytes; 1 to {}", bitcode.size(), wire::kMaxBlobBytes));
  }
  if (version_.minor < 3) {
    return refuse(
        fmt::format("programs need protocol 1.3, and the coordinator at {} speaks 1.{}: "
                    "upgrade it",
                    options_.address, version_.minor));
  }
  const std::string sha256 = Sha256Of(bitcode);
  std::uint64_t held = 0;
  bool is_known = false;  // how much it holds: the first message asks
  for (int setbacks = 0; held < bitcode.size();) {
    wire::BlobPiece piece{.sha256 = sha256, .total = bitcode.size(), .offset = held, .bytes = {}};
    if (is_known) piece.bytes = bitcode.substr(held, wire::kMaxBlobPieceBytes);
    auto answer = Ask<wire::BlobHeld>(std::move(piece), Nanos{0});
    const bool is_wrong = !answer && answer.error().refusal &&
                          answer.error().refusal->code == FailureCode::kInvalidBenchmark;
    if (!answer && !is_wrong) return std::unexpected(std::move(answer).error());
    const std::uint64_t now_held = answer ? answer->bytes : 0;
    // What came of it was damaged on the coordinator's disk, or others' programs took its room.
    if ((is_wrong || (is_known && now_held <= held)) && ++setbacks == kMostSetbacks) {
      if (!answer) return std::unexpected(std::move(answer).error());
      return std::unexpected(Refusal(
          {.failure = {.code = FailureCode::kBusy,
                       .message = "the coordinator dropped what came of the program, to make room "
                                  "for others (--uploads-size)"}}));
    }
    held = now_held;
    is_known = true;
  }
  return fmt::format("bitcode://sha256/{}", sha256);
}

Answer<std::string> Client::GetBlob(const std::string& sha256) {
  const auto fail = [&](ErrorKind kind, std::string_view what) {
    return std::unexpected(
        CallError{.kind = kind, .message = fmt::format("the blob {} {}", sha256, what)});
  };
  if (version_.minor < 4) {
    return fail(ErrorKind::kInvalid,
                fmt::format("needs protocol 1.4, and the coordinator at {} speaks 1.{}: upgrade it",
                            options_.address, version_.minor));
  }
  std::string bytes;
  for (std::uint64_t total = 1; bytes.size() < total;) {
    LF_TRY(
        const auto piece,
        Ask<wire::BlobPiece>(wire::BlobWanted{.sha256 = sha256, .offset = bytes.size()}, Nanos{0}));
    if (piece.total == 0) {
      return fail(ErrorKind::kNotFound,
                  "is not kept at the coordinator (any more): submit its job again, fresh");
    }
    if (piece.sha256 != sha256 || piece.offset != bytes.size() || piece.bytes.empty()) {
      return fail(ErrorKind::kCorrupt, "came with a gap");
    }
    total = piece.total;
    bytes += piece.bytes;
  }
  if (Sha256Of(bytes) != sha256) return fail(ErrorKind::kCorrupt, "came with another hash");
  return bytes;
}

Answer<wire::OutcomeList> Client::ListOutcomes(const wire::ListOutcomes& list) {
  return Ask<wire::OutcomeList>(list, Nanos{0});
}

}  // namespace loopfleet::client
