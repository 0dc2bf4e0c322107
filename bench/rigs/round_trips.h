#pragma once
// RoundTrips: how long a message and its answer take between two threads over the sockets that the
// product uses, a hundred times a second for as long as this object lives: what this machine, with
// all that runs on it then, makes of two wake-ups. Nothing that answers over a network is quicker.

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

  // Ends it. Milliseconds, in the order in which they were made.
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
