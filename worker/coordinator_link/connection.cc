#include "worker/coordinator_link/connection.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::worker {

Connection::Connection(const Options& options, const Parts& parts, wire::WorkerHello hello)
    : options_(options),
      parts_(parts),
      protocol_(options.protocol, *this, parts.runner, std::move(hello)) {}

Connection::~Connection() = default;

Status Connection::Run() {
  LF_TRY_VOID(protocol_.Open(parts_.clock.Now()));
  for (;;) {
    LF_TRY_VOID(parts_.check_children());
    if (drain_requested_ && !protocol_.is_draining()) {
      protocol_.StartDrain(parts_.clock.Now());
    }
    LF_TRY_VOID(ReceiveAll());
    parts_.liveness.Beat();
    const Instant now = parts_.clock.Now();
    LF_TRY(const Protocol::Phase phase, protocol_.Step(now));
    ShowRegistration();
    if (phase == Protocol::Phase::kOver) return {};
    poller_->Wait(std::clamp<Nanos>(protocol_.NextTimer() - now, Nanos{0}, options_.longest_wait));
  }
}

void Connection::RequestDrain() {
  drain_requested_ = true;
  parts_.wakeup.Signal();
}

// Only the first failure is an error. Later the directory of an ipc:// endpoint may be gone while
// the coordinator restarts; the protocol tries again at its next silence.
Status Connection::Reconnect() {
  const bool is_first = !poller_;
  const bool was_there = dealer_.has_value();
  poller_.reset();
  dealer_.reset();
  Result<wire::Dealer> dealer = wire::Dealer::Connect(
      parts_.context, options_.coordinator,
      {.keys = options_.keys ? &*options_.keys : nullptr, .watch_handshake = true});
  if (!dealer && is_first) return std::unexpected(std::move(dealer).error());
  poller_.emplace();
  poller_->Add(parts_.wakeup);
  if (dealer) {
    dealer_ = *std::move(dealer);
    poller_->Add(*dealer_);
  } else if (was_there) {  // once, until it is there again
    log::Warning("coordinator.unreachable message=\"{}\"", dealer.error().message);
  }
  return {};
}

bool Connection::Send(const wire::WorkerMessage& message) {
  return dealer_ && dealer_->Send(wire::Encode(message)) == wire::SendResult::kSent;
}

// An operator may authorize the key at any time, so the worker keeps trying.
void Connection::TellHandshake() {
  const auto failure = dealer_->TakeHandshakeFailure();
  if (!failure) return;
  if (*failure == wire::Dealer::HandshakeFailure::kKeyRefused) {
    log::Warning("coordinator.key_refused name={} key={}", options_.keys->self.name,
                 options_.keys->own.public_key.Fingerprint());
  } else {
    log::Warning("coordinator.handshake_failed {}",
                 options_.keys ? "it has no keys, or another one than coordinator.key"
                               : "it may want a key: see --keys");
  }
}

Status Connection::ReceiveAll() {
  if (!dealer_) return {};
  TellHandshake();
  if (dealer_->ConsumeReconnect()) protocol_.ConnectedAgain(parts_.clock.Now());
  while (const std::optional<std::string> frame = dealer_ ? dealer_->Receive() : std::nullopt) {
    std::expected<wire::WorkerCommand, Failure> command = wire::DecodeWorkerCommand(*frame);
    if (!command) {
      log::Warning(
          "coordinator.unreadable message=\"{}\" hint=\"workers have an address of their own\"",
          command.error().message);
      continue;
    }
    if (const auto* welcome = std::get_if<wire::WorkerWelcome>(&*command)) {
      if (welcome->reference_mhz > 0) parts_.set_reference_clock(welcome->reference_mhz);
    }
    LF_TRY_VOID(protocol_.Hear(*std::move(command), parts_.clock.Now()));
    ShowRegistration();
  }
  return {};
}

void Connection::ShowRegistration() {
  const bool is_registered = protocol_.is_registered();
  if (is_registered && !was_registered_) parts_.metrics.Connected();
  if (!is_registered && was_registered_) parts_.metrics.Disconnected();
  was_registered_ = is_registered;
}

}  // namespace loopfleet::worker
