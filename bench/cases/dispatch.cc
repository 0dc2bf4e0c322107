// How long one event takes in the coordinator's core while a thousand workers idle and the jobs
// that wait are for none of them. The core alone: no socket, no disk. The peer of an event is the
// same event when nothing else waits; that of a look at the queue is a walk through it.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/rigs/result_line.h"
#include "common/base/check.h"
#include "common/base/quantile.h"
#include "coordinator/core/core.h"

namespace loopfleet::bench {
namespace {

using coordinator::Core;
using coordinator::Event;
using coordinator::PeerId;

constexpr std::uint32_t kWorkers = 1'000;
constexpr std::uint32_t kDemands = 1'000;  // as many as Limits::max_demands allows
constexpr std::uint32_t kRetries = 64;     // as many as one event looks at
constexpr int kEvents = 50;
constexpr const char* kClient = "client";

Uuid Numbered(std::uint32_t number) {
  Uuid uuid;
  uuid.bytes[0] = static_cast<std::uint8_t>(number >> 16);
  uuid.bytes[1] = static_cast<std::uint8_t>(number >> 8);
  uuid.bytes[2] = static_cast<std::uint8_t>(number);
  uuid.bytes[15] = 1;
  return uuid;
}

// A core whose disk writes at once.
class Fleet {
 public:
  Fleet() : core_({}) {
    Give(coordinator::Recovered{});
    Give(coordinator::ClientAsked{.peer = kClient,
                                  .question = wire::ClientHello{.client = Numbered(1)}});
  }

  struct Hello {
    std::uint32_t credit = 1;
    std::vector<std::string> labels;
  };
  // Returns the worker's connection.
  PeerId Greet(std::uint32_t number, Hello hello) {
    PeerId peer = fmt::format("worker {}", number);
    Say(peer, wire::WorkerHello{
                  .version = wire::kProtocolVersion,
                  .worker = Numbered(number),
                  .name = peer,
                  .credit = hello.credit,
                  .hardware = {.hardware_class = "bench", .host = fmt::format("host {}", number)},
                  .labels = std::move(hello.labels)});
    return peer;
  }
  // Returns how long the slowest of the events took, in ms.
  double Say(const PeerId& peer, wire::WorkerMessage message) {
    return Give(coordinator::WorkerSaid{.peer = peer, .message = std::move(message)});
  }
  double Submit(std::vector<JobSpec> specs) {
    coordinator::Submission submission{
        .peer = kClient, .request_id = Numbered(++requests_), .digest = "bench"};
    for (JobSpec& spec : specs) {
      ResolvedTask measure{.flop_count = 1};
      ++jobs_;
      for (std::size_t i = 0; i < sizeof jobs_; ++i) {
        measure.subject.bytes[i] = static_cast<std::uint8_t>(jobs_ >> (8 * i));
      }
      submission.jobs.push_back({.spec = std::move(spec), .resolution = measure});
    }
    return Give(std::move(submission));
  }
  const coordinator::State& state() const { return core_.state(); }
  // The leases granted since the last call.
  std::vector<std::pair<PeerId, wire::Lease>> TakeLeases() { return std::exchange(leases_, {}); }

 private:
  double Give(Event event) {
    double slowest = 0;
    std::deque<Event> events;
    events.push_back(std::move(event));
    while (!events.empty()) {
      now_.instant += std::chrono::microseconds(10);
      now_.wall += std::chrono::microseconds(10);
      const auto start = std::chrono::steady_clock::now();
      coordinator::Effects effects = core_.On(std::move(events.front()), now_);
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      slowest = std::max(slowest, took.count());
      events.pop_front();
      for (coordinator::Effect& effect : effects) {
        if (const auto* persist = std::get_if<coordinator::Persist>(&effect)) {
          events.emplace_back(coordinator::Persisted{{persist->token}});
        } else if (auto* send = std::get_if<coordinator::SendToWorker>(&effect)) {
          const auto* leases = std::get_if<wire::Leases>(&send->command);
          if (leases == nullptr) continue;
          for (const wire::Lease& lease : leases->leases) leases_.emplace_back(send->peer, lease);
        }
      }
    }
    return slowest;
  }

  Core core_;
  coordinator::Moment now_{.instant = Instant(std::chrono::seconds(1000)),
                           .wall = WallTime(std::chrono::seconds(1'700'000'000))};
  std::uint32_t requests_ = 0;
  std::uint64_t jobs_ = 0;
  std::vector<std::pair<PeerId, wire::Lease>> leases_;
};

wire::Reports ReportOf(const wire::Lease& lease, FailureCode code) {
  wire::Reports reports;
  reports.reports.push_back({.lease = lease.lease,
                             .job = lease.job,
                             .evaluation = {.verdict = Failure{.code = code, .message = "bench"}}});
  return reports;
}

std::vector<std::string> Carried(std::uint32_t count) {
  std::vector<std::string> labels;
  for (std::uint32_t i = 0; i < count; ++i) labels.push_back(fmt::format("carried {}", i));
  return labels;
}

// One job that any worker may run, after the slowest of its events; then the worker is free again.
double OneMoreJob(Fleet& fleet) {
  const double took = fleet.Submit({JobSpec{}});
  for (const auto& [peer, lease] : fleet.TakeLeases()) {
    fleet.Say(peer, ReportOf(lease, FailureCode::kRunTimeout));
  }
  return took;
}

// Each waiting job has `labels` labels: all workers carry all of them but the last.
void MeasureLabels(std::uint32_t labels) {
  Fleet fleet;
  for (std::uint32_t i = 0; i < kWorkers; ++i) fleet.Greet(i, {.labels = Carried(labels - 1)});
  std::vector<double> alone;
  for (int i = 0; i < kEvents; ++i) alone.push_back(OneMoreJob(fleet));

  std::vector<JobSpec> specs;
  for (std::uint32_t i = 0; i < kDemands - 1; ++i) {
    JobSpec spec{.labels = Carried(labels - 1)};
    spec.labels.push_back(fmt::format("unserved {}", i));
    specs.push_back(std::move(spec));
  }
  const double all_at_once = fleet.Submit(std::move(specs));
  std::vector<double> among;
  for (int i = 0; i < kEvents; ++i) among.push_back(OneMoreJob(fleet));
  Print({.bench = "dispatch",
         .name = fmt::format("one more job beside {} label sets of {} labels that none of {} idle "
                             "workers carries, slowest event, median",
                             kDemands - 1, labels, kWorkers),
         .value = Quantile(among, 0.5),
         .unit = "ms",
         .peer = "the same with an empty queue",
         .peer_value = Quantile(alone, 0.5),
         .details = {{"most_ms", Quantile(among, 1)}, {"submitting_them_ms", all_at_once}}});
}

// Worker 0 failed jobs that only it and the last worker, which is busy, can run.
void MeasureRetries() {
  Fleet fleet;
  const JobSpec spec{.labels = {"both"}};
  const auto greet = [&](std::uint32_t number) {
    return fleet.Greet(number, {.credit = kRetries, .labels = {"both"}});
  };
  greet(kWorkers + 1);
  fleet.Submit(std::vector(kRetries, spec));
  for (std::uint32_t i = 1; i <= kWorkers; ++i) fleet.Greet(i, {});
  const PeerId failing = greet(0);
  fleet.TakeLeases();
  std::vector<double> alone;
  for (int i = 0; i < kEvents; ++i) alone.push_back(fleet.Say(failing, wire::Heartbeat{}));
  fleet.Submit(std::vector(kRetries, spec));
  for (const auto& [peer, lease] : fleet.TakeLeases()) {
    LF_CHECK(peer == failing, "{} got a lease", peer);
    fleet.Say(peer, ReportOf(lease, FailureCode::kUnstableTiming));
  }
  std::vector<double> among;
  for (int i = 0; i < kEvents; ++i) among.push_back(fleet.Say(failing, wire::Heartbeat{}));
  LF_CHECK(fleet.TakeLeases().empty(), "a job did not wait");
  Print({.bench = "dispatch",
         .name = fmt::format("a heartbeat while {} jobs wait to be retried on a busy worker and {} "
                             "others idle, median",
                             kRetries, kWorkers),
         .value = Quantile(among, 0.5),
         .unit = "ms",
         .peer = "the same when none waits",
         .peer_value = Quantile(alone, 0.5),
         .details = {{"most_ms", Quantile(among, 1)}}});
}

// The oldest among the first jobs of all groups.
std::optional<Instant> WalkToOldest(const coordinator::State& state) {
  std::optional<Instant> oldest;
  for (const coordinator::Demand& demand : state.ready.Demands()) {
    for (const auto& group : state.ready.Groups(demand)) {
      const Instant accepted_at = state.jobs.Find(*state.ready.FrontOf(demand, group))->accepted_at;
      oldest = std::min(oldest.value_or(accepted_at), accepted_at);
    }
  }
  return oldest;
}

// No two of the jobs share demand and priority.
void MeasureOldest() {
  constexpr std::int32_t kPriorities = 200;
  Fleet fleet;
  for (std::uint32_t demand = 0; demand < kDemands; ++demand) {
    std::vector<JobSpec> specs;
    for (std::int32_t priority = 0; priority < kPriorities; ++priority) {
      specs.push_back({.priority = priority, .labels = {fmt::format("unserved {}", demand)}});
    }
    fleet.Submit(std::move(specs));
  }
  const coordinator::State& state = fleet.state();
  std::vector<double> asked;
  std::vector<double> walked;
  for (int i = 0; i < kEvents; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto oldest = state.queued_since.Oldest();
    const auto between = std::chrono::steady_clock::now();
    LF_CHECK(oldest && oldest == WalkToOldest(state), "the oldest job is another one");
    const auto end = std::chrono::steady_clock::now();
    asked.push_back(std::chrono::duration<double, std::milli>(between - start).count());
    walked.push_back(std::chrono::duration<double, std::milli>(end - between).count());
  }
  Print({.bench = "dispatch",
         .name = fmt::format("the oldest of {} queued jobs, each with its own demand and priority, "
                             "median",
                             state.ready.size()),
         .value = Quantile(asked, 0.5),
         .unit = "ms",
         .peer = "a walk through all demands, clients and priorities",
         .peer_value = Quantile(walked, 0.5),
         .details = nlohmann::ordered_json::object()});
}

}  // namespace
}  // namespace loopfleet::bench

int main() {
  loopfleet::bench::MeasureLabels(3);
  loopfleet::bench::MeasureLabels(61);
  loopfleet::bench::MeasureRetries();
  loopfleet::bench::MeasureOldest();
}
