#pragma once
// StubWorkers: workers that speak the real protocol and measure nothing: each lease is answered at
// once with a result of real size (15 samples) about the tree of its job. One thread for all of
// them. Jobs of one benchmark have to be alike: each benchmark is replayed once.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "common/job/job_spec.h"
#include "common/wire/message.h"
#include "common/wire/transport/context.h"
#include "common/wire/transport/poller.h"
#include "common/wire/transport/wakeup.h"

namespace loopfleet::bench {

// What a stub says of itself, and what it answers to a job: a result about the job's tree.
struct StubAnswer {
  wire::WorkerHello hello;  // but for who it is
  Evaluation evaluation;
};
StubAnswer AnswerTo(const JobSpec& job);

struct StubWorkersOptions {
  std::string coordinator;  // its endpoint for workers
  std::uint32_t workers = 4;
  std::uint32_t credit = 1024;  // leases that each takes at once
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
