#pragma once
// RoundTrips: measures a message and its answer between two threads, over the product's sockets, a
// hundred times a second during its lifetime. This is the cost of two wake-ups under the machine's
// current load, and a lower bound for every answer over a network.

#include <atomic>
#include <thread>
#include <vector>

#include "common/base/result.h"
#include "common/wire/transport/router.h"

namespace loopfleet::bench {

class RoundTrips {
 public:
  RoundTrips();
  ~RoundTrips();
  RoundTrips(const RoundTrips&) = delete;
  RoundTrips& operator=(const RoundTrips&) = delete;

  // Stops and returns the milliseconds of each round trip, in order.
  std::vector<double> Stop();

 private:
  void Answer();
  void Ask();

  wire::Context context_;
  wire::Router router_;  // over TCP on loopback
  std::atomic<bool> stopping_ = false;
  std::vector<double> took_ms_;
  std::thread answering_;
  std::thread asking_;
};

}  // namespace loopfleet::bench
