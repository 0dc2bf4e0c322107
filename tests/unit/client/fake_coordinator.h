#pragma once
// FakeCoordinator: a real socket with scripted replies, on its own thread.

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/wire/message.h"
#include "common/wire/transport/router.h"
#include "common/wire/transport/wakeup.h"

namespace loopfleet::client {

class FakeCoordinator {
 public:
  // Returns the reply to a request; nullopt: no reply. Called on the fake's thread.
  using Mind = std::function<std::optional<wire::CoordinatorMessage>(const wire::ClientRequest&)>;

  // Listens at `endpoint` ("tcp://127.0.0.1:0": any free port).
  FakeCoordinator(const std::string& endpoint, Mind mind);
  ~FakeCoordinator();

  const std::string& endpoint() const { return endpoint_; }
  std::vector<wire::ClientRequest> Requests() const;  // all so far, hellos included

 private:
  void Serve(wire::Router router);

  wire::Context context_;
  std::string endpoint_;
  Mind mind_;
  wire::Wakeup stop_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<wire::ClientRequest> requests_;  // guarded by mutex_
  std::thread thread_;
};

// Answers hellos, and passes all other requests to `mind`.
FakeCoordinator::Mind Greeting(FakeCoordinator::Mind mind);

}  // namespace loopfleet::client
