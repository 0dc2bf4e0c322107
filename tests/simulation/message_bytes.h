#pragma once
// Passes messages through the real encoders and a network that flips and loses bytes.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "common/wire/codec/codec.h"
#include "tests/simulation/dice.h"

namespace loopfleet::simulation {

// Why the receiver could not read it.
struct Unreadable {
  Failure failure;
  std::uint64_t number = 0;
};
// Decoded although bytes were changed: a real network's checksums would catch it.
struct Dropped {};

template <class Message>
using Received = std::variant<Message, Unreadable, Dropped>;

enum class Damage : std::uint8_t { kNone, kSome };

Received<wire::ClientRequest> PassBytes(const wire::ClientRequest& sent, Damage damage, Dice& dice);
Received<wire::CoordinatorReply> PassBytes(const wire::CoordinatorReply& sent, Damage damage,
                                           Dice& dice);
Received<wire::WorkerMessage> PassBytes(const wire::WorkerMessage& sent, Damage damage, Dice& dice);
Received<wire::WorkerCommand> PassBytes(const wire::WorkerCommand& sent, Damage damage, Dice& dice);

}  // namespace loopfleet::simulation
