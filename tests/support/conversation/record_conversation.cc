// record_conversation LISTEN COORDINATOR: forwards every frame between one peer and a coordinator,
// and prints it in the format of tests/golden/conversation. Runs until killed.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "common/base/check.h"
#include "common/wire/transport/poller.h"
#include "tests/support/conversation/conversation.h"

namespace {

using loopfleet::Conversation;
namespace wire = loopfleet::wire;

void Print(Conversation::Way way, const std::string& bytes) {
  fmt::print("{}\n", loopfleet::LineOf({.way = way, .bytes = bytes}));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: record_conversation LISTEN COORDINATOR\n");
    return 2;
  }
  wire::Context context;
  auto front = wire::Router::Bind(context, argv[1], {});
  LF_CHECK(front.has_value(), "{}", front.error().message);
  auto back = wire::Dealer::Connect(context, argv[2]);
  LF_CHECK(back.has_value(), "{}", back.error().message);
  wire::Poller poller;
  poller.Add(*front);
  poller.Add(*back);
  std::optional<wire::PeerId> peer;
  while (true) {
    poller.Wait(std::chrono::seconds(1));
    while (auto received = front->Receive()) {
      peer = received->peer;
      Print(Conversation::Way::kToCoordinator, received->frame);
      LF_CHECK(back->Send(received->frame) == wire::SendResult::kSent, "not sent");
    }
    while (auto frame = back->Receive()) {
      LF_CHECK(peer.has_value(), "the coordinator spoke first");
      Print(Conversation::Way::kFromCoordinator, *frame);
      (void)front->Send(*peer, *frame);  // fails after the peer's goodbye
    }
  }
}
