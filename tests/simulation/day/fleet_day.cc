#include "tests/simulation/day/fleet_day.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>

#include "coordinator/core/core.h"
#include "tests/simulation/agenda.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/serial_runner.h"
#include "worker/coordinator_link/protocol.h"

namespace loopfleet::simulation {
namespace {

using coordinator::Effect;
using coordinator::Event;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Nanos kLatency = milliseconds(1);
constexpr Nanos kCommit = milliseconds(5);
constexpr Nanos kShortestJob = seconds(2);
constexpr Nanos kLongestJob = seconds(8);
constexpr std::uint32_t kCredit = 2;
constexpr Nanos kDrainBefore = seconds(120);
constexpr double kNightJobsPerSecond = 0.3;
constexpr double kNoonJobsPerSecond = 4;
constexpr std::size_t kCampaignJobs = 3'000;  // submitted at once, at night and by day
// A campaign at noon is the worst: it waits for machines to start and then for its turn.
constexpr double kLongestWaitS = 30 * 60;

double Seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

SubjectKey SubjectOf(const JobSpec& spec) {
  SubjectKey key;
  const std::uint64_t number = std::stoull(spec.tag);
  std::memcpy(key.bytes.data(), &number, sizeof number);
  return key;
}

Conditions TheConditions() {
  return {.hardware = {.device = DeviceKind::kCpu, .hardware_class = "cpu class"},
          .compiler = {.llvm = "19", .tier = "general", .revision = "1"},
          .policy = "simulated",
          .isolation = "none"};
}

class Day;

// A worker from its hello to its end.
class DayWorker final : private worker::Protocol::Line, private SerialRunner {
 public:
  DayWorker(Day& day, std::uint32_t number);

  void Drain();
  bool is_leaving() const { return protocol_->is_draining(); }
  void Hear(wire::WorkerCommand command);
  void Step();
  const std::string& peer() const { return peer_; }
  Instant started_at() const { return started_at_; }

 private:
  bool Send(const wire::WorkerMessage& message) override;
  Status Reconnect() override { return {}; }

  void Run(wire::Lease lease) override;
  void Finish(const wire::Lease& lease);
  void WakeUpAt(Instant when);

  Day& day_;
  const std::string peer_;
  const Instant started_at_;
  wire::WorkerHello hello_;
  std::unique_ptr<worker::Protocol> protocol_;
  std::optional<Instant> wakes_at_;
};

class Day {
 public:
  explicit Day(const FleetPlan& plan)
      : plan_(plan), dice_(plan.seed, 1), autoscaler_(plan.rule), core_({.limits = TheLimits()}) {}

  DayReport Run() {
    Give(coordinator::Recovered{});
    Give(coordinator::ClientAsked{.peer = "client",
                                  .question = wire::ClientHello{.client = Uuid{.bytes = {1}}}});
    TickPasses();
    Scale();
    // Where no worker is, jobs end after half a minute: clients come once there are some.
    agenda_.After(minutes(10), [this] { MinutePasses(); });
    for (const Nanos when : {Nanos(hours(3)), Nanos(hours(13))}) {
      agenda_.After(when, [this] { Submit(kCampaignJobs); });
    }
    const Instant start = agenda_.now();
    const Instant end = start + hours(24);
    while (agenda_.now() < end) agenda_.Step();
    is_over_ = true;
    while (stored_ < jobs_ && agenda_.now() < end + hours(1)) agenda_.Step();
    for (const auto& [number, worker] : workers_) CountHours(*worker);
    CheckTheEnd();
    return std::move(report_);
  }

  // ---- for workers
  template <class Action>
  void After(std::uint32_t number, Nanos delay, Action action) {  // dropped if the worker ends
    agenda_.After(delay, [this, number, action] {
      if (const auto worker = workers_.find(number); worker != workers_.end()) {
        action(*worker->second);
      }
    });
  }
  Instant now() const { return agenda_.now(); }
  void Say(const std::string& peer, wire::WorkerMessage message) {
    agenda_.After(kLatency, [this, peer, message = std::move(message)] {
      Give(coordinator::WorkerSaid{.peer = peer, .message = message});
    });
  }
  Nanos RunTime() { return dice_.Between(kShortestJob, kLongestJob); }
  void Ran(Nanos time) { report_.busy_hours += Seconds(time) / 3600; }
  void Over(std::uint32_t number) {  // it said goodbye
    agenda_.After(Nanos{0}, [this, number] { Remove(number); });
  }

 private:
  static coordinator::Limits TheLimits() {
    coordinator::Limits limits;
    limits.heartbeat = milliseconds(10'000);  // a tenth of the messages of a real fleet
    limits.lease_arrival = milliseconds(30'000);
    return limits;
  }

  // ---- the load
  double JobsPerSecond() const {
    const double day = Seconds(agenda_.now() - kDawn) / 86'400;
    const double sun = std::max(0.0, -std::cos(2 * std::numbers::pi * day));
    return kNightJobsPerSecond + (kNoonJobsPerSecond - kNightJobsPerSecond) * sun;
  }
  void MinutePasses() {
    if (is_over_) return;
    const auto mean = static_cast<std::size_t>(JobsPerSecond() * 60);
    Submit(dice_.Between(mean / 2, mean + mean / 2));
    agenda_.After(minutes(1), [this] { MinutePasses(); });
  }
  void Submit(std::size_t count) {
    if (count == 0) return;
    coordinator::Submission event{.peer = "client", .number = ++requests_};
    std::memcpy(event.request_id.bytes.data(), &requests_, sizeof requests_);
    event.digest = std::to_string(requests_);
    for (std::size_t i = 0; i < count; ++i) {
      coordinator::ResolvedJob job{
          .spec = {.source = looptree::BenchmarkUri{"benchmark://loop_tool-cpu-v0/64"},
                   .tag = std::to_string(++jobs_)}};
      job.resolution = ResolvedTask{
          .subject = SubjectOf(job.spec), .placement = Placement::kCpu, .flop_count = 1};
      event.jobs.push_back(std::move(job));
    }
    Give(std::move(event));
  }

  // ---- the coordinator
  void Give(Event event) {
    std::deque<Event> events;
    events.push_back(std::move(event));
    while (!events.empty()) {
      const auto since = agenda_.now() - Instant{};
      const coordinator::Moment now{.instant = agenda_.now(), .wall = WallTime(since)};
      auto effects = core_.On(std::move(events.front()), now);
      events.pop_front();
      for (Effect& effect : effects) Do(effect, events);
    }
  }
  void Do(Effect& effect, std::deque<Event>& next) {
    if (auto* persist = std::get_if<coordinator::Persist>(&effect)) {
      agenda_.After(kCommit, [this, group = std::make_shared<coordinator::Persist>(
                                        std::move(*persist))] { Written(*group); });
    } else if (auto* sent = std::get_if<coordinator::SendToWorker>(&effect)) {
      Send(*sent, next);
    } else if (auto* reply = std::get_if<coordinator::ReplyToClient>(&effect)) {
      if (const auto* refused = std::get_if<wire::Refused>(&reply->message)) {
        Wrong("a client is refused: " + refused->failure.message);
      }
    }
  }
  void Send(coordinator::SendToWorker& sent, std::deque<Event>& next) {
    const auto number = static_cast<std::uint32_t>(std::stoul(sent.peer));
    if (workers_.contains(number)) {
      After(number, kLatency,
            [command = std::move(sent.command)](DayWorker& worker) { worker.Hear(command); });
      return;
    }
    coordinator::WorkerUnreachable unreachable{.peer = sent.peer};
    if (const auto* leases = std::get_if<wire::Leases>(&sent.command)) {
      for (const wire::Lease& lease : leases->leases) {
        unreachable.undelivered.push_back(lease.lease);
      }
    }
    next.push_back(std::move(unreachable));
  }
  void Written(const coordinator::Persist& group) {
    for (const storage::Write& write : group.writes) {
      if (const auto* accepted = std::get_if<storage::JobsAccepted>(&write)) {
        for (std::size_t i = 0; i < accepted->jobs.size(); ++i) {
          const auto index = accepted->first_index + static_cast<std::uint32_t>(i);
          waiting_.emplace(JobId{.batch = accepted->batch, .index = index}, agenda_.now());
        }
        accepted_ += accepted->jobs.size();
      } else if (const auto* finished = std::get_if<storage::JobFinished>(&write)) {
        Stored(finished->outcome);
      } else if (const auto* answered = std::get_if<storage::JobsAnswered>(&write)) {
        for (const auto& job : answered->jobs) Stored(storage::OutcomeOf(*answered, job));
      }
    }
    Give(coordinator::Persisted{{group.token}});
  }
  void Stored(const Outcome& outcome) {
    const auto job = waiting_.find(outcome.job);
    if (job == waiting_.end()) return Wrong("a job has two outcomes");
    const double wait_s = Seconds(agenda_.now() - job->second);
    total_wait_s_ += wait_s;
    report_.longest_wait_s = std::max(report_.longest_wait_s, wait_s);
    waiting_.erase(job);
    ++stored_;
    if (!outcome.evaluation.ok()) {
      Wrong("a job failed: " + outcome.evaluation.failure().message);
    }
  }
  void TickPasses() {
    report_.most_waiting = std::max<std::uint64_t>(report_.most_waiting, JobsInHand());
    Give(coordinator::Tick{});
    agenda_.After(seconds(1), [this] { TickPasses(); });
  }

  // ---- the fleet
  std::size_t JobsInHand() const {
    return core_.Queued(Placement::kCpu) + core_.Queued(Placement::kAny) + core_.Leased();
  }
  // Whether it counts: it does not leave, nor soon enough for its successor to be asked for.
  bool IsStaying(const DayWorker& worker) const {
    if (worker.is_leaving()) return false;
    return plan_.time_limit == Nanos{0} || agenda_.now() < worker.started_at() + plan_.time_limit -
                                                               kDrainBefore - plan_.longest_start;
  }
  std::size_t Replicas() const {
    return starting_ + static_cast<std::size_t>(std::ranges::count_if(
                           workers_, [&](const auto& each) { return IsStaying(*each.second); }));
  }
  void Scale() {
    const std::size_t replicas = Replicas();
    const std::size_t wish = autoscaler_.Wish(agenda_.now(), JobsInHand(), replicas);
    for (std::size_t i = replicas; i < wish; ++i) {
      ++starting_;
      agenda_.After(dice_.Between(plan_.shortest_start, plan_.longest_start), [this] { Start(); });
    }
    for (std::size_t i = wish; i < replicas; ++i) SendAnyAway();
    for (const auto& [number, worker] : workers_) {
      const double chance = plan_.killed_per_hour * Seconds(plan_.rule.interval) / 3600;
      if (!dice_.Chance(chance)) continue;
      ++report_.workers_killed;
      Remove(number);
      break;
    }
    agenda_.After(plan_.rule.interval, [this] { Scale(); });
  }
  void Start() {
    --starting_;
    const std::uint32_t number = ++report_.workers_started;
    workers_.emplace(number, std::make_unique<DayWorker>(*this, number));
    report_.most_workers = std::max<std::uint64_t>(report_.most_workers, workers_.size());
    workers_.at(number)->Step();
    if (plan_.time_limit > Nanos{0}) {
      After(number, plan_.time_limit - kDrainBefore, [](DayWorker& worker) { worker.Drain(); });
      agenda_.After(plan_.time_limit, [this, number] {
        if (workers_.contains(number)) Wrong("a worker was not drained by its time limit");
      });
    }
  }
  void SendAnyAway() {  // Kubernetes and Slurm do not know which works least
    std::vector<DayWorker*> staying;
    for (const auto& [number, worker] : workers_) {
      if (IsStaying(*worker)) staying.push_back(worker.get());
    }
    if (!staying.empty()) dice_.Of(staying)->Drain();
  }
  void CountHours(const DayWorker& worker) {
    report_.worker_hours += Seconds(agenda_.now() - worker.started_at()) / 3600;
  }
  void Remove(std::uint32_t number) {
    const auto worker = workers_.find(number);
    if (worker == workers_.end()) return;
    CountHours(*worker->second);
    workers_.erase(worker);
  }

  // ---- promises
  void Wrong(std::string what) {
    if (report_.wrong.size() < 10) report_.wrong.push_back(std::move(what));
  }
  void CheckTheEnd() {
    report_.jobs = jobs_;
    report_.mean_wait_s = total_wait_s_ / static_cast<double>(std::max<std::uint64_t>(stored_, 1));
    if (accepted_ != jobs_) Wrong(fmt::format("{} of {} jobs were accepted", accepted_, jobs_));
    if (stored_ != accepted_) Wrong(fmt::format("{} of {} jobs are done", stored_, accepted_));
    if (report_.longest_wait_s > kLongestWaitS) {
      Wrong(fmt::format("a job waited for {:.0f} s", report_.longest_wait_s));
    }
    const std::uint64_t bound =
        kCampaignJobs + static_cast<std::uint64_t>(kNoonJobsPerSecond * kLongestWaitS);
    if (report_.most_waiting > bound) {
      Wrong(fmt::format("{} jobs waited at once, more than {}", report_.most_waiting, bound));
    }
  }

  static constexpr Instant kDawn{seconds(1000)};  // midnight: when the agenda begins

  const FleetPlan& plan_;
  Agenda agenda_;
  Dice dice_;
  Autoscaler autoscaler_;
  coordinator::Core core_;
  DayReport report_;
  bool is_over_ = false;
  std::uint64_t requests_ = 0;
  std::uint64_t jobs_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t stored_ = 0;
  double total_wait_s_ = 0;
  std::map<JobId, Instant> waiting_;  // accepted and not stored
  std::size_t starting_ = 0;
  std::map<std::uint32_t, std::unique_ptr<DayWorker>> workers_;
};

DayWorker::DayWorker(Day& day, std::uint32_t number)
    : SerialRunner(2 * kCredit), day_(day), peer_(std::to_string(number)), started_at_(day.now()) {
  const Conditions conditions = TheConditions();
  hello_ = {.name = "worker " + peer_,
            .credit = kCredit,
            .hardware = conditions.hardware,
            .compiler = conditions.compiler,
            .policy = conditions.policy};
  hello_.hardware.host = "host " + peer_;
  std::memcpy(hello_.worker.bytes.data(), &number, sizeof number);
  Line& line = *this;
  SerialRunner& runner = *this;
  protocol_ = std::make_unique<worker::Protocol>(worker::Protocol::Options{}, line, runner, hello_);
  (void)protocol_->Open(day_.now());
}

void DayWorker::Drain() {
  if (is_leaving()) return;
  protocol_->StartDrain(day_.now());
  Step();
}

void DayWorker::Hear(wire::WorkerCommand command) {
  (void)protocol_->Hear(std::move(command), day_.now());
  Step();
}

bool DayWorker::Send(const wire::WorkerMessage& message) {
  day_.Say(peer_, message);
  return true;
}

void DayWorker::Step() {
  const auto number = static_cast<std::uint32_t>(std::stoul(peer_));
  if (protocol_->Step(day_.now()).value() == worker::Protocol::Phase::kOver) {
    return day_.Over(number);
  }
  WakeUpAt(std::max(protocol_->NextTimer(), day_.now() + milliseconds(1)));
}

void DayWorker::WakeUpAt(Instant when) {
  if (wakes_at_ && *wakes_at_ <= when) return;
  wakes_at_ = when;
  const auto number = static_cast<std::uint32_t>(std::stoul(peer_));
  day_.After(number, when - day_.now(), [when](DayWorker& worker) {
    if (worker.wakes_at_ != when) return;  // replaced by an earlier one
    worker.wakes_at_.reset();
    worker.Step();
  });
}

void DayWorker::Run(wire::Lease lease) {
  const Nanos time = day_.RunTime();
  const auto number = static_cast<std::uint32_t>(std::stoul(peer_));
  day_.After(number, time, [lease = std::move(lease), time](DayWorker& worker) {
    worker.day_.Ran(time);
    worker.Finish(lease);
  });
}

void DayWorker::Finish(const wire::Lease& lease) {
  Conditions conditions = TheConditions();
  conditions.hardware.host = hello_.hardware.host;
  Over({.lease = lease.lease,
        .job = lease.job,
        .evaluation = {.verdict = Measurement{.elapsed_ns = 1000,
                                              .elapsed_low_ns = 999,
                                              .elapsed_high_ns = 1001,
                                              .elapsed_min_ns = 999,
                                              .elapsed_mean_ns = 1000,
                                              .spread = 0.001,
                                              .grade = Grade::kA,
                                              .iterations_per_sample = 1,
                                              .samples_ns = {999, 1000, 1001},
                                              .sample_flags = {0, 0, 0}},
                       .subject = SubjectOf(lease.spec),
                       .flop_count = 1,
                       .conditions = conditions}});
  Step();
}

}  // namespace

DayReport RunFleetDay(const FleetPlan& plan) { return Day(plan).Run(); }

}  // namespace loopfleet::simulation
