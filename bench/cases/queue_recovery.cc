// How soon jobs are dispatched again after kill -9 of a coordinator with a million queued jobs.

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "bench/cases/queue_case.h"
#include "bench/rigs/queue_rig.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/stopwatch.h"
#include "bench/rigs/stub_workers.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint32_t kQueued = 1'000'000;
constexpr int kRestarts = 3;

// Waits until `count` jobs of the batch are stored.
Status AwaitFinished(client::Client& client, BatchId batch, std::uint32_t count) {
  while (true) {
    const auto info = client.ShowBatch(batch);
    if (!info) return std::unexpected(ToError(info.error()));
    if (info->finished >= count) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

Status RunRecoveryCase() {
  LF_TRY(QueueRig rig, QueueRig::Start());
  BatchId batch;
  {
    LF_TRY(auto client, rig.Connect());
    const auto submitted = client.Submit(std::vector<JobSpec>(kQueued, NullJob()));
    if (!submitted) return std::unexpected(ToError(submitted.error()));
    batch = *submitted;
  }
  std::vector<double> ready;
  std::vector<double> stored;
  std::uint32_t finished = 0;
  for (int i = 0; i < kRestarts; ++i) {
    const auto start = SteadyClock::now();
    LF_TRY_VOID(rig.Restart());
    ready.push_back(Since(start));
    const StubWorkers stubs({.coordinator = rig.cluster().worker_address()});
    LF_TRY(auto client, rig.Connect());
    LF_TRY_VOID(AwaitFinished(client, batch, finished + 1));
    stored.push_back(Since(start));
    const auto info = client.ShowBatch(batch);
    if (!info) return std::unexpected(ToError(info.error()));
    finished = info->finished + 4096;  // jobs leased at the kill may still be stored
  }
  std::ranges::sort(ready);
  std::ranges::sort(stored);
  Print({.bench = "queue",
         .name = "1 M queued jobs, kill -9 and restart, until a job of them is stored",
         .value = stored[kRestarts / 2],
         .unit = "s",
         .details = {{"slowest_s", stored.back()}, {"ready_s", ready[kRestarts / 2]}}});
  return {};
}

}  // namespace loopfleet::bench
