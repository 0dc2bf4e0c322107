#pragma once
// StubWorkers: workers that speak the real protocol but measure nothing. They answer each lease at
// once with a result of real size (15 samples) for the job's tree. One thread serves all of them.
// Jobs of one benchmark must be equal, because each benchmark is replayed once.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "common/job/job_spec.h"
#include "common/wire/message.h"
#include "common/wire/transport/context.h"
#include "common/wire/transport/poller.h"
#include "common/wire/transport/wakeup.h"

namespace loopfleet::bench {

// A stub's hello, and its answer to a job: a result for the job's tree.
struct StubAnswer {
  wire::WorkerHello hello;  // without the worker's identity
  Evaluation evaluation;
};
StubAnswer AnswerTo(const JobSpec& job);

struct StubWorkersOptions {
  std::string coordinator;  // its endpoint for workers
  std::uint32_t workers = 4;
  std::uint32_t credit = 1024;  // leases that each worker holds at most
  std::vector<std::string> labels = {};
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
