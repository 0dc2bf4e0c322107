#include "tests/simulation/message_bytes.h"

#include <utility>

#include "common/base/check.h"

namespace loopfleet::simulation {
namespace {

std::expected<wire::ClientRequest, Unreadable> Decode(const wire::ClientRequest&,
                                                      const std::string& frame) {
  auto decoded = wire::DecodeClientRequest(frame);
  if (decoded) return *std::move(decoded);
  return std::unexpected(
      Unreadable{.failure = decoded.error().failure, .number = decoded.error().number});
}

template <class Message>
std::expected<Message, Unreadable> Convert(std::expected<Message, Failure> decoded) {
  if (decoded) return *std::move(decoded);
  return std::unexpected(Unreadable{.failure = decoded.error()});
}

std::expected<wire::CoordinatorReply, Unreadable> Decode(const wire::CoordinatorReply&,
                                                         const std::string& frame) {
  return Convert(wire::DecodeCoordinatorReply(frame));
}
std::expected<wire::WorkerMessage, Unreadable> Decode(const wire::WorkerMessage&,
                                                      const std::string& frame) {
  return Convert(wire::DecodeWorkerMessage(frame));
}
std::expected<wire::WorkerCommand, Unreadable> Decode(const wire::WorkerCommand&,
                                                      const std::string& frame) {
  return Convert(wire::DecodeWorkerCommand(frame));
}

void DamageBytes(std::string& frame, Dice& dice) {
  if (dice.Chance(0.3)) {
    frame.resize(dice.Index(frame.size() + 1));
    return;
  }
  for (int flips = dice.Between(1, 4); flips > 0; --flips) {
    frame[dice.Index(frame.size())] ^= static_cast<char>(1 << dice.Between(0, 7));
  }
}

template <class Message>
Received<Message> Pass(const Message& sent, Damage damage, Dice& dice) {
  std::string frame = wire::Encode(sent);
  if (damage == Damage::kSome) DamageBytes(frame, dice);
  auto decoded = Decode(sent, frame);
  if (!decoded) {
    LF_CHECK(!decoded.error().failure.message.empty(), "a refusal without a reason");
    return std::move(decoded).error();
  }
  if (*decoded == sent) return *std::move(decoded);
  LF_CHECK(damage == Damage::kSome, "a message is not what was sent");
  return Dropped{};
}

}  // namespace

Received<wire::ClientRequest> PassBytes(const wire::ClientRequest& sent, Damage damage,
                                        Dice& dice) {
  return Pass(sent, damage, dice);
}
Received<wire::CoordinatorReply> PassBytes(const wire::CoordinatorReply& sent, Damage damage,
                                           Dice& dice) {
  return Pass(sent, damage, dice);
}
Received<wire::WorkerMessage> PassBytes(const wire::WorkerMessage& sent, Damage damage,
                                        Dice& dice) {
  return Pass(sent, damage, dice);
}
Received<wire::WorkerCommand> PassBytes(const wire::WorkerCommand& sent, Damage damage,
                                        Dice& dice) {
  return Pass(sent, damage, dice);
}

}  // namespace loopfleet::simulation
