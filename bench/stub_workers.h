#pragma once
// StubWorkers: workers that speak the real protocol and measure nothing: each lease is answered at
// once with a result of real size (15 samples). One thread for all of them.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "common/looptree/key.h"
#include "common/wire/socket.h"

namespace loopfleet::bench {

struct StubWorkersOptions {
  std::string coordinator;  // its endpoint for workers
  std::uint32_t workers = 4;
  std::uint32_t credit = 1024;  // leases that each takes at once
  looptree::TreeKey tree;       // of every job: the results have to be about it
  std::uint64_t flop_count = 1;
};

class StubWorkers {
 public:
  explicit StubWorkers(const StubWorkersOptions& options);
  ~StubWorkers();
  StubWorkers(const StubWorkers&) = delete;
  StubWorkers& operator=(const StubWorkers&) = delete;

 private:
  void Serve();

  StubWorkersOptions options_;
  wire::Wakeup stop_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace loopfleet::bench
