// How busy the coordinator keeps a thousand workers with jobs of 10 ms and a full queue. Each
// worker has its own connection; a job only waits.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/cases/queue_case.h"
#include "bench/rigs/queue_rig.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/stub_workers.h"
#include "common/base/check.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Moment = SteadyClock::time_point;

constexpr std::uint32_t kWorkers = 1'000;
constexpr auto kJobTime = std::chrono::milliseconds(10);
constexpr std::uint32_t kCredit = 24;          // a quarter of a second of work
constexpr std::size_t kReportsPerMessage = 8;  // fewer when a worker runs out of jobs
constexpr auto kPause = std::chrono::milliseconds(4);
constexpr auto kHeartbeat = std::chrono::milliseconds(500);
constexpr auto kWarmUp = std::chrono::seconds(2);
constexpr auto kMeasured = std::chrono::seconds(4);
constexpr std::uint32_t kJobs = 620'000;  // more than the workers can finish in that time

class TimedWorker {
 public:
  TimedWorker(wire::Context& context, const std::string& coordinator, std::uint32_t number,
              const StubAnswer& answer)
      : dealer_(wire::Dealer::Connect(context, coordinator).value()), answer_(answer) {
    wire::WorkerHello hello = answer.hello;
    hello.worker = Uuid::Random();
    hello.name = fmt::format("timed-{}", number);
    hello.credit = kCredit;
    Send(hello);
  }

  // Finishes the jobs due by now. Counts the time after `since` as busy.
  void Advance(Moment since, Moment now) {
    Flush();
    while (const auto frame = dealer_.Receive()) {
      const auto command = wire::DecodeWorkerCommand(*frame);
      LF_CHECK(command.has_value(), "{}", command.error().message);
      if (const auto* refused = std::get_if<wire::Refused>(&*command)) {
        LF_CHECK(false, "refused: {}", refused->failure.message);
      }
      const auto* leases = std::get_if<wire::Leases>(&*command);
      if (leases == nullptr) continue;
      if (waiting_.empty()) begun_ = std::max(begun_, now);  // it was idle until now
      for (const wire::Lease& lease : leases->leases) waiting_.push_back({lease.lease, lease.job});
    }
    while (!waiting_.empty() && begun_ + kJobTime <= now) {
      begun_ += kJobTime;
      if (begun_ > since) busy_ += std::min<SteadyClock::duration>(kJobTime, begun_ - since);
      done_.push_back(waiting_.front());
      waiting_.pop_front();
      if (done_.size() >= kReportsPerMessage || waiting_.empty()) Report();
    }
  }
  void Beat() {
    wire::Heartbeat heartbeat;
    for (const auto& [lease, job] : waiting_) heartbeat.held.push_back(lease);
    for (const auto& [lease, job] : done_) heartbeat.held.push_back(lease);
    Send(heartbeat);
  }
  SteadyClock::duration busy() const { return busy_; }

 private:
  void Report() {
    wire::Reports reports;
    for (const auto& [lease, job] : done_) {
      reports.reports.push_back({.lease = lease, .job = job, .evaluation = answer_.evaluation});
    }
    done_.clear();
    Send(reports);
  }
  void Send(const wire::WorkerMessage& message) {
    unsent_.push_back(wire::Encode(message));
    Flush();
  }
  void Flush() {
    while (!unsent_.empty() && dealer_.Send(unsent_.front()) == wire::SendResult::kSent) {
      unsent_.pop_front();
    }
  }

  wire::Dealer dealer_;
  const StubAnswer& answer_;
  std::deque<std::pair<LeaseId, JobId>> waiting_;  // the first one has run since begun_
  std::vector<std::pair<LeaseId, JobId>> done_;
  Moment begun_{};
  SteadyClock::duration busy_{};
  std::deque<std::string> unsent_;
};

}  // namespace

Status RunFleetCase() {
  LF_TRY(const QueueRig rig, QueueRig::Start());
  LF_TRY(auto client, rig.Connect());
  const std::vector<JobSpec> jobs(kJobs, NullJob());
  const auto batch = client.Submit(jobs);
  if (!batch) return std::unexpected(ToError(batch.error()));

  wire::Context context;
  const StubAnswer answer = AnswerTo(NullJob());
  std::deque<TimedWorker> workers;
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    workers.emplace_back(context, rig.cluster().worker_address(), i, answer);
  }
  const Moment since = SteadyClock::now() + kWarmUp;
  const Moment end = since + kMeasured;
  Moment next_beat = SteadyClock::now() + kHeartbeat;
  std::optional<QueueRig::Watch> watch;
  for (Moment now = SteadyClock::now(); now < end; now = SteadyClock::now()) {
    if (!watch && now >= since) watch.emplace(rig);
    for (TimedWorker& worker : workers) worker.Advance(since, now);
    if (now >= next_beat) {
      for (TimedWorker& worker : workers) worker.Beat();
      next_beat += kHeartbeat;
    }
    std::this_thread::sleep_for(kPause);
  }
  const QueueCost cost = watch->Read();
  SteadyClock::duration busy{};
  for (const TimedWorker& worker : workers) busy += worker.busy();
  const double share = std::chrono::duration<double>(busy).count() / (kWorkers * cost.seconds);
  const auto info = client.ShowBatch(*batch);
  if (!info) return std::unexpected(ToError(info.error()));
  if (info->failed > 0) return Fail(ErrorKind::kCorrupt, "null jobs failed");
  if (info->finished == info->job_count) return Fail(ErrorKind::kCorrupt, "the jobs ran out");
  Print({.bench = "queue",
         .name = "1,000 workers with jobs of 10 ms, time at work",
         .value = share * 100,
         .unit = "%",
         .details = {{"reports_per_message", kReportsPerMessage},
                     {"credit", kCredit},
                     {"coordinator_cpu_cores", cost.coordinator_cpu_seconds / cost.seconds},
                     {"generator_cpu_cores", cost.generator_cpu_seconds / cost.seconds}}});
  return {};
}

}  // namespace loopfleet::bench
