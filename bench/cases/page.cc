// What viewers of the page cost: /metrics and the queue with 100 live viewers and 64 half-open
// connections, beside the same coordinator without them. Rounds alternate, so that other load on
// the machine affects both.
//
//   bench_page [ROUNDS [JOBS]]

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "bench/rigs/metrics_page.h"
#include "bench/rigs/page_crowd.h"
#include "bench/rigs/queue_rig.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/stub_workers.h"
#include "common/base/quantile.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Forty scrapes a second on both sides: enough for a 99th percentile.
constexpr std::chrono::milliseconds kScrapePause{25};
constexpr PageCrowdOptions kCrowd{};

struct Round {
  double jobs_per_second = 0;
  double coordinator_cpu_seconds = 0;
  std::vector<double> scrape_ms;
};

// Scrapes /metrics during its lifetime.
class Scraper {
 public:
  explicit Scraper(std::string address)
      : address_(std::move(address)), thread_([this] { Run(); }) {}
  ~Scraper() {
    if (thread_.joinable()) (void)Stop();
  }

  Result<std::vector<double>> Stop() {
    stop_ = true;
    thread_.join();
    LF_TRY_VOID(std::move(status_));
    return std::move(took_ms_);
  }

 private:
  void Run() {
    while (!stop_ && status_) {
      const auto begin = SteadyClock::now();
      const auto metrics = ReadMetrics(address_);
      if (!metrics) {
        status_ = std::unexpected(metrics.error());
      } else if (metrics->empty()) {
        status_ = Fail(ErrorKind::kUnavailable, "/metrics was refused");
      }
      took_ms_.push_back(
          std::chrono::duration<double, std::milli>(SteadyClock::now() - begin).count());
      std::this_thread::sleep_for(kScrapePause);
    }
  }

  std::string address_;
  std::atomic<bool> stop_ = false;
  Status status_;
  std::vector<double> took_ms_;
  std::thread thread_;
};

Result<Round> RunJobs(const QueueRig& rig, const std::vector<JobSpec>& jobs) {
  LF_TRY(auto client, rig.Connect());
  Scraper scraper(rig.cluster().http());
  const QueueRig::Watch watch(rig);
  const auto batch = client.Submit(jobs);
  if (!batch) return std::unexpected(ToError(batch.error()));
  LF_TRY_VOID(AwaitStored(client, *batch));
  const QueueCost cost = watch.Read();
  Round round{.jobs_per_second = static_cast<double>(jobs.size()) / cost.seconds,
              .coordinator_cpu_seconds = cost.coordinator_cpu_seconds};
  LF_TRY(round.scrape_ms, scraper.Stop());
  return round;
}

struct Side {
  std::vector<double> rates;
  std::vector<double> scrape_ms;
  double cpu_seconds = 0;

  void Add(Round round) {
    rates.push_back(round.jobs_per_second);
    scrape_ms.insert(scrape_ms.end(), round.scrape_ms.begin(), round.scrape_ms.end());
    cpu_seconds += round.coordinator_cpu_seconds;
  }
};

Status Run(std::uint32_t rounds, std::uint32_t count) {
  LF_TRY(const auto rig, QueueRig::Start());
  const StubWorkers workers({.coordinator = rig.cluster().worker_address()});
  const std::vector<JobSpec> jobs(count, NullJob());
  LF_TRY_VOID(RunJobs(rig, jobs));  // warm-up
  Side alone;
  Side watched;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < 2 * rounds; ++i) {
    const bool is_watched = i % 4 == 1 || i % 4 == 2;  // A B B A
    std::unique_ptr<PageCrowd> crowd;
    if (is_watched) {
      PageCrowdOptions options = kCrowd;
      options.address = rig.cluster().http();
      crowd = std::make_unique<PageCrowd>(options);
    }
    LF_TRY(Round round, RunJobs(rig, jobs));
    if (crowd != nullptr && crowd->viewers() != kCrowd.viewers) {
      return Fail(ErrorKind::kUnavailable, fmt::format("{} of {} viewers were there at the end",
                                                       crowd->viewers(), kCrowd.viewers));
    }
    if (crowd != nullptr) bytes += crowd->bytes();
    (is_watched ? watched : alone).Add(std::move(round));
  }
  const std::string beside = "the same coordinator with nobody watching, rounds alternating";
  Print({.bench = "page",
         .name = fmt::format("null jobs, {} viewers and {} half-open connections", kCrowd.viewers,
                             kCrowd.half_open),
         .value = Quantile(watched.rates, 0.5),
         .unit = "jobs/s",
         .peer = beside,
         .peer_value = Quantile(alone.rates, 0.5),
         .details = {{"rounds", rounds},
                     {"jobs", count},
                     {"coordinator_cpu_us_per_job", watched.cpu_seconds / rounds / count * 1e6},
                     {"coordinator_cpu_us_per_job_alone", alone.cpu_seconds / rounds / count * 1e6},
                     {"viewers_received_mb", static_cast<double>(bytes) / 1e6}}});
  Print({.bench = "page",
         .name = fmt::format("/metrics p99, {} viewers and {} half-open connections, queue busy",
                             kCrowd.viewers, kCrowd.half_open),
         .value = Quantile(watched.scrape_ms, 0.99),
         .unit = "ms",
         .peer = beside,
         .peer_value = Quantile(alone.scrape_ms, 0.99),
         .details = {{"scrapes", watched.scrape_ms.size()},
                     {"p50_ms", Quantile(watched.scrape_ms, 0.5)},
                     {"most_ms", Quantile(watched.scrape_ms, 1)}}});
  return {};
}

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  const auto number = [&](int at, std::uint32_t otherwise) {
    return argc > at ? static_cast<std::uint32_t>(std::atoi(argv[at])) : otherwise;
  };
  const auto status = loopfleet::bench::Run(number(1, 6), number(2, 150'000));
  if (status) return 0;
  fmt::print(stderr, "bench page: {}\n", status.error().message);
  return 1;
}
