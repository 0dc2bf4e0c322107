#include "tests/simulation/simulated_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace loopfleet::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanos kResendAfter = seconds(1);  // client::ClientOptions
constexpr Nanos kLongPoll = seconds(1);
constexpr std::size_t kHosts = 2;

}  // namespace

SimulatedClient::SimulatedClient(const Parts& parts, std::size_t index, std::uint64_t seed)
    : parts_(parts), index_(index), dice_(seed, 200 + index) {
  id_.bytes[0] = 0xc0;
  id_.bytes[1] = static_cast<std::uint8_t>(index);
  link_ = parts_.port.Add([this](wire::CoordinatorReply reply) { Hear(std::move(reply)); });
  Plan();
}

template <class Action>
void SimulatedClient::After(Nanos delay, Action action) {
  parts_.agenda.After(delay, [this, life = life_, action] {
    if (life_ == life) action();
  });
}

void SimulatedClient::Plan() {
  std::uint8_t requests = 0;
  for (std::size_t b = 0; b < parts_.mix.batches_per_client; ++b) {
    Batch batch;
    const std::size_t messages = dice_.Between(std::size_t{1}, parts_.mix.most_messages);
    for (std::size_t m = 0; m < messages; ++m) {
      wire::SubmitJobs submit;
      submit.request_id.bytes[0] = static_cast<std::uint8_t>(index_ + 1);
      submit.request_id.bytes[1] = ++requests;
      submit.end = m + 1 == messages ? wire::BatchEnd::kComplete : wire::BatchEnd::kMoreFollows;
      const std::size_t jobs = dice_.Between(std::size_t{0}, parts_.mix.most_jobs);
      for (std::size_t j = 0; j < jobs; ++j) submit.jobs.push_back(parts_.pool.Draw(dice_));
      batch.messages.push_back(std::move(submit));
    }
    batches_.push_back(std::move(batch));
  }
}

void SimulatedClient::Start() {
  ++life_;
  outstanding_.reset();
  parts_.port.Connect(link_);
  if (!dice_.Chance(Rate(Fault::kStranger))) SayHello();
  After(dice_.Between(Nanos{0}, Nanos(milliseconds(200))), [this] { GoOn(); });
  After(seconds(1), [this] { SecondPasses(); });
}

void SimulatedClient::Heal() {
  is_healed_ = true;
  if (parts_.mix[Fault::kOperator] == 0) return;
  for (const Nanos later : {seconds(0), seconds(5), seconds(30)}) {
    parts_.agenda.After(later, [this] { ResumeAllHosts(); });
  }
}

std::string SimulatedClient::Describe() const {
  return fmt::format("client {}: stage {}, {} batches to do, batch {}, {} outcomes", index_,
                     static_cast<int>(stage_), batches_.size(),
                     batches_.empty() ? BatchId{} : batches_.front().id, after_);
}

// ---- requests -----------------------------------------------------------------------------------

void SimulatedClient::SayHello() {
  parts_.port.Send(link_, wire::ClientRequest{.number = ++last_number_,
                                              .message = wire::ClientHello{.client = id_}});
}

void SimulatedClient::Ask(wire::ClientMessage message, Nanos expected) {
  outstanding_ = {.number = ++last_number_, .message = std::move(message), .expected = expected};
  Transmit();
}

void SimulatedClient::Transmit() {
  outstanding_->sent_at = parts_.agenda.now();
  parts_.port.Send(
      link_, wire::ClientRequest{.number = outstanding_->number, .message = outstanding_->message});
  ResendAfterSilence(outstanding_->number);
}

void SimulatedClient::ResendAfterSilence(std::uint64_t number) {
  After(outstanding_->expected + kResendAfter, [this, number] {
    if (!outstanding_ || outstanding_->number != number) return;
    parts_.checker.Surprised("a client heard nothing and asked again");
    SayHello();  // the coordinator may have restarted
    Transmit();
  });
}

void SimulatedClient::Hear(wire::CoordinatorReply reply) {
  if (!outstanding_ || reply.number != outstanding_->number) return;
  std::visit(
      [&](const auto& message) {
        if constexpr (requires { this->On(message); }) On(message);
      },
      reply.message);
}

void SimulatedClient::TryAgainAfter(Nanos pause) {
  outstanding_.reset();
  After(pause, [this] { GoOn(); });
}

// ---- the client's steps -------------------------------------------------------------------------

void SimulatedClient::GoOn() {
  if (outstanding_) return;
  if (batches_.empty() && stage_ != Stage::kRead) stage_ = Stage::kDone;
  switch (stage_) {
    case Stage::kSubmit: {
      Batch& batch = batches_.front();
      wire::SubmitJobs message = batch.messages[message_];
      if (message_ > 0) message.append_to = batch.id;
      return Ask(std::move(message), Nanos{0});
    }
    case Stage::kRepeat: {
      Batch& batch = batches_.front();
      wire::SubmitJobs message = batch.messages[message_];
      if (message_ > 0) message.append_to = batch.id;
      if (dice_.Chance(Rate(Fault::kConflict))) message = OtherContent(std::move(message));
      return Ask(std::move(message), Nanos{0});
    }
    case Stage::kCancel: return Ask(wire::CancelBatch{.batch = batches_.front().id}, Nanos{0});
    case Stage::kFollow:
    case Stage::kRead:
      return Ask(
          wire::FetchOutcomes{.batch = stage_ == Stage::kRead ? reading_ : batches_.front().id,
                              .after_sequence = after_,
                              .max_outcomes = dice_.Between(1U, 6U),
                              .wait_ms = 1000},
          kLongPoll);
    case Stage::kDone: return;
  }
}

wire::SubmitJobs SimulatedClient::OtherContent(wire::SubmitJobs message) {
  message.jobs.push_back(parts_.pool.Draw(dice_));
  return message;
}

void SimulatedClient::On(const wire::Accepted& accepted) {
  outstanding_.reset();
  Batch& batch = batches_.front();
  if (stage_ == Stage::kSubmit) {
    batch.id = accepted.batch;
    if (message_ == 0) parts_.known_batches.push_back(accepted.batch);
  }
  if (accepted.job_count > 0 && dice_.Chance(0.2)) {  // the answer does not matter
    const JobId job{.batch = accepted.batch,
                    .index = accepted.first_index + dice_.Between(0U, accepted.job_count - 1)};
    parts_.port.Send(link_, wire::ClientRequest{.number = ++last_number_,
                                                .message = wire::ExplainJob{.job = job}});
  }
  if (stage_ == Stage::kSubmit &&
      (dice_.Chance(Rate(Fault::kRepeat)) || dice_.Chance(Rate(Fault::kConflict)))) {
    stage_ = Stage::kRepeat;
    return GoOn();
  }
  NextMessage();
}

void SimulatedClient::NextMessage() {
  Batch& batch = batches_.front();
  stage_ = Stage::kSubmit;
  if (!batch.is_cancelled && dice_.Chance(Rate(Fault::kCancel))) {
    stage_ = Stage::kCancel;
  } else if (batch.is_cancelled || ++message_ == batch.messages.size()) {
    stage_ = Stage::kFollow;
    after_ = 0;
  }
  After(dice_.Between(Nanos{0}, Nanos(milliseconds(300))), [this] { GoOn(); });
}

void SimulatedClient::On(const wire::BatchInfo&) {
  if (stage_ != Stage::kCancel) return;
  outstanding_.reset();
  batches_.front().is_cancelled = true;
  NextMessage();
}

void SimulatedClient::On(const wire::OutcomePage& page) {
  outstanding_.reset();
  if (!page.outcomes.empty()) after_ = page.outcomes.back().sequence;
  const wire::BatchInfo& info = page.batch;
  const bool is_over = info.state != wire::BatchState::kOpen && info.finished == info.job_count &&
                       after_ >= info.finished;
  if (!is_over) return GoOn();
  if (stage_ == Stage::kRead) {
    stage_ = Stage::kDone;
    return;
  }
  NextBatch();
}

void SimulatedClient::NextBatch() {
  batches_.pop_front();
  message_ = 0;
  after_ = 0;
  stage_ = Stage::kSubmit;
  if (batches_.empty()) {  // finally read another client's batch
    stage_ = Stage::kRead;
    reading_ = dice_.Of(parts_.known_batches);
  }
  After(dice_.Between(Nanos{0}, Nanos(milliseconds(500))), [this] { GoOn(); });
}

void SimulatedClient::On(const wire::Refused& refused) {
  const FailureCode code = refused.failure.code;
  switch (code) {
    case FailureCode::kUnauthenticated: SayHello(); return TryAgainAfter(Nanos{0});
    case FailureCode::kDuplicateIdConflict:
      if (stage_ != Stage::kRepeat) {
        return parts_.checker.Violate("I4 only other content conflicts", refused.failure.message);
      }
      outstanding_.reset();
      return NextMessage();
    case FailureCode::kNotFound:
      // An open batch may be over without the client's doing; the checker judges that.
      outstanding_.reset();
      if (stage_ == Stage::kFollow || stage_ == Stage::kRead) {
        return parts_.checker.Violate("I1 nothing accepted is lost", refused.failure.message);
      }
      batches_.front().is_cancelled = true;
      return NextMessage();
    case FailureCode::kQuotaExceeded:
    case FailureCode::kBusy:
    case FailureCode::kStorageFull:
    case FailureCode::kShuttingDown:
    case FailureCode::kMalformed:  // bytes were damaged on the way
    case FailureCode::kUnsupported:
    case FailureCode::kVersionMismatch:
      return TryAgainAfter(
          std::clamp<Nanos>(milliseconds(refused.retry_after_ms), milliseconds(10), seconds(1)));
    default:
      parts_.checker.Violate("refusals fit",
                             fmt::format("{}: {}", InfoOf(code).name, refused.failure.message));
  }
}

// ---- faults -------------------------------------------------------------------------------------

void SimulatedClient::SecondPasses() {
  After(seconds(1), [this] { SecondPasses(); });
  if (dice_.Chance(Rate(Fault::kPartition))) {
    parts_.port.Part(link_, dice_.Between(Nanos(milliseconds(500)), Nanos(seconds(8))),
                     static_cast<ClientPort::Deaf>(dice_.Between(0, 2)));
    if (dice_.Chance(0.5)) parts_.port.Cut(link_);
  }
  if (dice_.Chance(Rate(Fault::kOperator))) DrainRandomHost();
  if (dice_.Chance(Rate(Fault::kVanish))) Vanish();
}

// An operator drains a host beside the client's other requests, and resumes it later. The resume
// is repeated, so that it arrives even if this connection breaks meanwhile.
void SimulatedClient::DrainRandomHost() {
  wire::SetDrain set{.target = fmt::format("host {}", dice_.Index(kHosts)), .by = "an operator"};
  parts_.port.Send(link_, wire::ClientRequest{.number = ++last_number_, .message = set});
  set.wish = wire::DrainAction::kResume;
  const Nanos pause = dice_.Between(Nanos(milliseconds(200)), Nanos(seconds(3)));
  for (const Nanos later : {pause, pause + seconds(4), pause + seconds(20), pause + seconds(40)}) {
    parts_.agenda.After(later, [this, set] {
      SayHello();
      parts_.port.Send(link_, wire::ClientRequest{.number = ++last_number_, .message = set});
    });
  }
}

// No drain outlives the faults: jobs wait for a drained worker. An operator whose client vanished
// connects again for that.
void SimulatedClient::ResumeAllHosts() {
  if (is_gone_for_good_) parts_.port.Connect(link_);
  SayHello();
  for (std::size_t host = 0; host < kHosts; ++host) {
    const wire::SetDrain set{.target = fmt::format("host {}", host),
                             .wish = wire::DrainAction::kResume,
                             .by = "an operator"};
    parts_.port.Send(link_, wire::ClientRequest{.number = ++last_number_, .message = set});
  }
}

void SimulatedClient::Vanish() {
  parts_.trace.Note(parts_.agenda.now(), 30, index_, life_,
                    [&] { return fmt::format("client {} vanishes", index_); });
  ++life_;
  outstanding_.reset();
  parts_.port.Disconnect(link_);
  if (dice_.Chance(0.3)) {
    is_gone_for_good_ = true;
    return;
  }
  parts_.agenda.After(dice_.Between(Nanos(milliseconds(10)), Nanos(seconds(5))),
                      [this] { Start(); });
}

}  // namespace loopfleet::simulation
