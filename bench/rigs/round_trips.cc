#include "bench/rigs/round_trips.h"

#include <chrono>
#include <string>

#include "common/base/check.h"
#include "common/wire/transport/poller.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{10};  // between round trips
constexpr std::chrono::milliseconds kLook{100};  // between checks of stopping_

}  // namespace

RoundTrips::RoundTrips()
    : router_(wire::Router::Bind(context_, "tcp://127.0.0.1:0", {}).value()),
      answering_([this] { Answer(); }),
      asking_([this] { Ask(); }) {}

RoundTrips::~RoundTrips() { Stop(); }

std::vector<double> RoundTrips::Stop() {
  stopping_ = true;
  if (asking_.joinable()) asking_.join();
  if (answering_.joinable()) answering_.join();
  return std::move(took_ms_);
}

void RoundTrips::Answer() {
  wire::Poller poller;
  poller.Add(router_);
  while (!stopping_) {
    poller.Wait(kLook);
    while (auto received = router_.Receive()) {
      router_.Send(received->peer, std::move(received->frame));
    }
  }
}

void RoundTrips::Ask() {
  auto dealer = wire::Dealer::Connect(context_, router_.endpoint()).value();
  wire::Poller poller;
  poller.Add(dealer);
  const std::string frame(256, 'x');
  while (!stopping_) {
    const auto start = SteadyClock::now();
    LF_CHECK(dealer.Send(frame) == wire::SendResult::kSent, "one message fits");
    while (!stopping_ && !dealer.Receive()) poller.Wait(kLook);
    const std::chrono::duration<double, std::milli> took = SteadyClock::now() - start;
    if (!stopping_) took_ms_.push_back(took.count());
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace loopfleet::bench
