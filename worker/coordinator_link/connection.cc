#include "worker/coordinator_link/connection.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::worker {

Session::Session(const Options& options, const Parts& parts, wire::WorkerHello hello)
    : options_(options),
      parts_(parts),
      conversation_(options.conversation, *this, parts.runner, std::move(hello)) {}

Session::~Session() = default;

Status Session::Run() {
  LF_TRY_VOID(conversation_.Open(parts_.clock.Now()));
  for (;;) {
    LF_TRY_VOID(parts_.check_children());
    if (drain_requested_ && !conversation_.is_draining()) {
      conversation_.StartDrain(parts_.clock.Now());
    }
    LF_TRY_VOID(ReceiveAll());
    parts_.pulse.Beat();
    const Instant now = parts_.clock.Now();
    LF_TRY(const Conversation::Phase phase, conversation_.Turn(now));
    ShowRegistration();
    if (phase == Conversation::Phase::kOver) return {};
    poller_->Wait(
        std::clamp<Nanos>(conversation_.NextTimer() - now, Nanos{0}, options_.longest_wait));
  }
}

void Session::RequestDrain() {
  drain_requested_ = true;
  parts_.wakeup.Signal();
}

Status Session::Reconnect() {
  poller_.reset();
  dealer_.reset();
  LF_TRY(dealer_, wire::Dealer::Connect(parts_.context, options_.coordinator,
                                        {.keys = options_.keys ? &*options_.keys : nullptr,
                                         .watch_handshake = true}));
  poller_.emplace();
  poller_->Add(*dealer_);
  poller_->Add(parts_.wakeup);
  return {};
}

bool Session::Send(const wire::WorkerMessage& message) {
  return dealer_->Send(wire::Encode(message)) == wire::SendResult::kSent;
}

// Whoever keeps the fleet may authorize the key at any time: the worker goes on trying.
void Session::TellHandshake() {
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

Status Session::ReceiveAll() {
  TellHandshake();
  if (dealer_->TakeReconnected()) conversation_.ConnectedAgain(parts_.clock.Now());
  while (const std::optional<std::string> frame = dealer_->Receive()) {
    std::expected<wire::WorkerCommand, Failure> command = wire::DecodeWorkerCommand(*frame);
    if (!command) {
      log::Warning("coordinator.unreadable message=\"{}\"", command.error().message);
      continue;
    }
    if (const auto* welcome = std::get_if<wire::WorkerWelcome>(&*command)) {
      if (welcome->reference_mhz > 0) parts_.set_reference_clock(welcome->reference_mhz);
    }
    LF_TRY_VOID(conversation_.Hear(*std::move(command), parts_.clock.Now()));
    ShowRegistration();
  }
  return {};
}

void Session::ShowRegistration() {
  const bool is_registered = conversation_.is_registered();
  if (is_registered && !was_registered_) parts_.metrics.Connected();
  if (!is_registered && was_registered_) parts_.metrics.Disconnected();
  was_registered_ = is_registered;
}

}  // namespace loopfleet::worker
