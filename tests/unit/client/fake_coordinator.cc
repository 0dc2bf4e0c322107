#include "tests/unit/client/fake_coordinator.h"

#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/wire/codec/codec.h"
#include "common/wire/transport/poller.h"

namespace loopfleet::client {

FakeCoordinator::FakeCoordinator(const std::string& endpoint, Mind mind) : mind_(std::move(mind)) {
  auto router = wire::Router::Bind(context_, endpoint, {});
  LF_CHECK(router.has_value(), "{}", router.error().message);
  endpoint_ = router->endpoint();
  thread_ = std::thread([this, bound = *std::move(router)]() mutable { Serve(std::move(bound)); });
}

FakeCoordinator::~FakeCoordinator() {
  stopping_ = true;
  stop_.Signal();
  thread_.join();
}

std::vector<wire::ClientRequest> FakeCoordinator::Requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

void FakeCoordinator::Serve(wire::Router router) {
  wire::Poller poller;
  poller.Add(router);
  poller.Add(stop_);
  while (!stopping_) {
    poller.Wait(std::chrono::seconds(1));
    while (const auto received = router.Receive()) {
      const auto request = wire::DecodeClientRequest(received->frame);
      LF_CHECK(request.has_value(), "{}", request.error().failure.message);
      {
        std::lock_guard lock(mutex_);
        requests_.push_back(*request);
      }
      if (const auto answer = mind_(*request)) {
        router.Send(received->peer, wire::Encode(wire::CoordinatorReply{.number = request->number,
                                                                        .message = *answer}));
      }
    }
  }
}

FakeCoordinator::Mind Greeting(FakeCoordinator::Mind mind) {
  return [mind = std::move(mind)](
             const wire::ClientRequest& request) -> std::optional<wire::CoordinatorMessage> {
    if (std::holds_alternative<wire::ClientHello>(request.message)) {
      return wire::Welcome{.coordinator = "fake", .epoch = 7};
    }
    return mind(request);
  };
}

}  // namespace loopfleet::client
