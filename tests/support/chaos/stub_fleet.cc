// loopfleet-stub-fleet: workers that use the real protocol (worker/coordinator_link/protocol.h) and
// measure nothing. A lease is answered after a fixed time with a result that identifies the job, so
// that a result stored for another job shows. One thread serves all workers, which makes a thousand
// of them cheap. Standard output has a JSON line when an epoch of the coordinator has welcomed all
// workers, when its first lease arrives, and at the end the number of jobs run and of repeated
// runs; with --tell-leases also each job taken and each job revoked. After SIGUSR1 every job ends
// at once; SIGTERM ends the fleet.

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/job_spec.h"
#include "common/job/loop_schedule.h"
#include "common/looptree/tree/key.h"
#include "common/wire/codec/codec.h"
#include "common/wire/keys/key_directory.h"
#include "common/wire/transport/poller.h"
#include "worker/coordinator_link/protocol.h"

namespace loopfleet::worker {
namespace {

volatile std::sig_atomic_t stop_requested = 0;
volatile std::sig_atomic_t jobs_end_at_once = 0;

struct Settings {
  std::string coordinator;
  std::uint32_t workers = 8;
  std::uint32_t credit = 16;
  std::uint32_t job_us = 500;
  // The heartbeat interval, whatever the coordinator asks for: sets how soon a restart is noticed.
  std::uint32_t heartbeat_ms = 100;
  bool tell_leases = false;
  std::optional<wire::PeerKeys> keys;  // shared by all workers
};

void Tell(const char* event, JobId job) {
  fmt::print("{{\"event\": \"{}\", \"job\": \"{}\"}}\n", event, job);
  std::fflush(stdout);
}

const HardwareFacts kHardware{.hardware_class = "stub", .model = "stub", .isa = "none"};
const CompilerFacts kCompiler{.llvm = "0", .tier = "stub", .revision = "0"};
constexpr const char* kPolicy = "stub";

// The time is one nanosecond per flop, so that a result identifies its job.
Evaluation ResultOf(const JobSpec& spec) {
  const auto replayed = ReplayJob(spec);
  LF_CHECK(replayed.has_value(), "a job was leased that cannot be rebuilt");
  const std::uint64_t flop = looptree::FlopCount(replayed->tree.program());
  const auto ns = static_cast<double>(flop);
  return {.verdict = Measurement{.elapsed_ns = ns,
                                 .elapsed_low_ns = ns,
                                 .elapsed_high_ns = ns,
                                 .elapsed_min_ns = ns,
                                 .elapsed_mean_ns = ns,
                                 .spread = 0,
                                 .grade = Grade::kA,
                                 .iterations_per_sample = 1,
                                 .samples_ns = std::vector<double>(15, ns),
                                 .sample_flags = std::vector<std::uint8_t>(15, 0)},
          .subject = looptree::KeyOf(replayed->tree),
          .flop_count = flop,
          .conditions = Conditions{.hardware = kHardware,
                                   .compiler = kCompiler,
                                   .threads = spec.threads,
                                   .cache = spec.cache,
                                   .policy = kPolicy,
                                   .isolation = "stub"},
          .code_hash = "00000000000000000000000000000000"};
}

// Counts the jobs run by all stubs.
class RunCount {
 public:
  void Ran(JobId job) {
    if (!jobs_.insert(job).second) ++again_;
  }
  std::size_t jobs() const { return jobs_.size(); }
  std::uint64_t again() const { return again_; }

 private:
  std::set<JobId> jobs_;
  std::uint64_t again_ = 0;
};

// Answers leases one at a time, each `job` after the previous one.
class StubRunner final : public LeaseRunner {
 public:
  StubRunner(const Settings& settings, const Clock& clock, RunCount& runs)
      : capacity_(settings.credit),
        job_(std::chrono::microseconds(settings.job_us)),
        tells_(settings.tell_leases),
        clock_(clock),
        runs_(runs) {}

  bool Accept(wire::Lease lease) override {
    const auto same = [&](const Work& held) { return held.lease.lease == lease.lease; };
    if (std::ranges::any_of(held_, same)) return true;
    if (held_.size() >= capacity_) return false;
    if (tells_) Tell("taken", lease.job);
    const Instant after = held_.empty() ? clock_.Now() : std::max(held_.back().done, clock_.Now());
    held_.push_back({.lease = std::move(lease), .done = after + job_});
    return true;
  }
  void Drop(std::span<const LeaseId> leases) override {
    std::erase_if(held_, [&](const Work& held) {
      if (std::ranges::find(leases, held.lease.lease) == leases.end()) return false;
      if (tells_) Tell("taken_away", held.lease.job);
      return true;
    });
  }
  std::vector<LeaseId> DropUnstarted() override {
    std::vector<LeaseId> dropped;
    while (held_.size() > 1) {
      dropped.push_back(held_.back().lease.lease);
      held_.pop_back();
    }
    return dropped;
  }
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override {
    std::vector<LeaseId> dropped;  // all but the running one
    for (std::size_t i = held_.size(); i-- > 1;) {
      const LeaseId lease = held_[i].lease.lease;
      if (std::ranges::find(leases, lease) == leases.end()) continue;
      dropped.push_back(lease);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return dropped;
  }
  std::vector<wire::Report> TakeFinished() override {
    std::vector<wire::Report> reports;
    const Instant now = clock_.Now();
    while (!held_.empty() && (jobs_end_at_once != 0 || held_.front().done <= now)) {
      const wire::Lease& lease = held_.front().lease;
      runs_.Ran(lease.job);
      reports.push_back(
          {.lease = lease.lease, .job = lease.job, .evaluation = ResultOf(lease.spec)});
      held_.pop_front();
    }
    return reports;
  }
  std::vector<wire::HeldLease> Held() const override {
    std::vector<wire::HeldLease> leases;
    for (const Work& held : held_) leases.push_back({held.lease.lease, held.lease.job});
    return leases;
  }
  std::optional<Instant> next() const {
    return held_.empty() ? std::nullopt : std::optional(held_.front().done);
  }

 private:
  struct Work {
    wire::Lease lease;
    Instant done{};
  };
  const std::size_t capacity_;
  const Nanos job_;
  const bool tells_;
  const Clock& clock_;
  RunCount& runs_;
  std::deque<Work> held_;
};

class StubFleet;

class StubWorker final : private Protocol::Line {
 public:
  StubWorker(StubFleet& fleet, const Settings& settings, const Clock& clock, std::uint32_t number);

  void Open(Instant now) { LF_CHECK(protocol_.Open(now), "no connection"); }
  void Step(const Clock& clock);
  Instant NextTimer() const {
    return std::min(protocol_.NextTimer(), runner_.next().value_or(Instant::max()));
  }
  wire::Dealer& dealer() { return *dealer_; }

 private:
  bool Send(const wire::WorkerMessage& message) override {
    return dealer_->Send(wire::Encode(message)) == wire::SendResult::kSent;
  }
  Status Reconnect() override;

  StubFleet& fleet_;
  const Settings& settings_;
  const std::uint32_t number_;
  std::optional<wire::Dealer> dealer_;
  StubRunner runner_;
  Protocol protocol_;
  std::uint64_t epoch_ = 0;
};

class StubFleet {
 public:
  explicit StubFleet(const Settings& settings) : settings_(settings) {
    for (std::uint32_t i = 0; i < settings_.workers; ++i) {
      if (i % kWorkersPerContext == 0) contexts_.emplace_back();
      stubs_.emplace_back(*this, settings_, clock_, i);
    }
  }

  void Run() {
    for (StubWorker& stub : stubs_) stub.Open(clock_.Now());
    Say("ready", 0);
    std::optional<wire::Poller> poller;
    while (stop_requested == 0) {
      if (std::exchange(reconnected_, false)) {
        poller.emplace();
        for (StubWorker& stub : stubs_) poller->Add(stub.dealer());
      }
      Instant next = clock_.Now() + std::chrono::milliseconds(100);
      for (const StubWorker& stub : stubs_) next = std::min(next, stub.NextTimer());
      poller->Wait(std::max<Nanos>(next - clock_.Now(), std::chrono::microseconds(200)));
      for (StubWorker& stub : stubs_) stub.Step(clock_);
    }
    fmt::print("{{\"event\": \"ended\", \"epoch\": 0, \"jobs\": {}, \"again\": {}}}\n",
               runs_.jobs(), runs_.again());
    std::fflush(stdout);
  }
  RunCount& runs() { return runs_; }

  void Reconnected() { reconnected_ = true; }
  void Welcomed(std::uint32_t worker, std::uint64_t epoch) {
    std::set<std::uint32_t>& welcomed = welcomed_[epoch];
    welcomed.insert(worker);
    if (welcomed.size() == settings_.workers && full_epoch_ < epoch) {
      full_epoch_ = epoch;
      Say("all_welcomed", epoch);
      welcomed_.erase(welcomed_.begin(), welcomed_.find(epoch));
    }
  }
  void Leased(std::uint64_t epoch) {
    if (epoch <= leased_epoch_) return;
    leased_epoch_ = epoch;
    Say("leased", epoch);
  }
  wire::Context& ContextOf(std::uint32_t worker) { return contexts_[worker / kWorkersPerContext]; }

 private:
  static void Say(const char* event, std::uint64_t epoch) {
    fmt::print("{{\"event\": \"{}\", \"epoch\": {}}}\n", event, epoch);
    std::fflush(stdout);
  }

  const Settings settings_;
  const SystemClock clock_;
  static constexpr std::uint32_t kWorkersPerContext = 250;  // libzmq allows 1,023 sockets in each
  std::deque<wire::Context> contexts_;
  std::deque<StubWorker> stubs_;
  std::map<std::uint64_t, std::set<std::uint32_t>> welcomed_;
  RunCount runs_;
  std::uint64_t full_epoch_ = 0;
  std::uint64_t leased_epoch_ = 0;
  bool reconnected_ = false;
};

wire::WorkerHello HelloOf(const Settings& settings, std::uint32_t number) {
  return {.worker = Uuid::Random(),
          .name = fmt::format("stub-{}", number),
          .pid = number,
          .credit = settings.credit,
          .hardware = kHardware,
          .compiler = kCompiler,
          .policy = kPolicy};
}

Protocol::Options Speaking(const Settings& settings) {
  Protocol::Options options;
  options.hello_interval =
      std::min(options.hello_interval, std::chrono::milliseconds(2 * settings.heartbeat_ms));
  // The same tolerated silence as a real worker's: the answer to a heartbeat shows a restart.
  options.silent_intervals = 3'000 / settings.heartbeat_ms;
  return options;
}

StubWorker::StubWorker(StubFleet& fleet, const Settings& settings, const Clock& clock,
                       std::uint32_t number)
    : fleet_(fleet),
      settings_(settings),
      number_(number),
      runner_(settings, clock, fleet.runs()),
      protocol_(Speaking(settings), *this, runner_, HelloOf(settings, number)) {}

Status StubWorker::Reconnect() {
  dealer_.reset();
  LF_TRY(dealer_, wire::Dealer::Connect(fleet_.ContextOf(number_), settings_.coordinator,
                                        {.keys = settings_.keys ? &*settings_.keys : nullptr,
                                         .watch_handshake = true}));
  fleet_.Reconnected();
  return {};
}

void StubWorker::Step(const Clock& clock) {
  if (dealer_->ConsumeReconnect()) protocol_.ConnectedAgain(clock.Now());
  while (const auto frame = dealer_->Receive()) {
    auto command = wire::DecodeWorkerCommand(*frame);
    LF_CHECK(command.has_value(), "{}", command.error().message);
    if (auto* welcome = std::get_if<wire::WorkerWelcome>(&*command)) {
      welcome->heartbeat_ms = settings_.heartbeat_ms;
      epoch_ = welcome->epoch;
      fleet_.Welcomed(number_, epoch_);
    }
    if (std::holds_alternative<wire::Leases>(*command)) fleet_.Leased(epoch_);
    const Status heard = protocol_.Hear(*std::move(command), clock.Now());
    LF_CHECK(heard.has_value(), "{}", heard.error().message);
  }
  const auto turned = protocol_.Step(clock.Now());
  LF_CHECK(turned.has_value(), "{}", turned.error().message);
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Workers that measure nothing");
  app.add_option("--coordinator", settings.coordinator)->required();
  app.add_option("--workers", settings.workers);
  app.add_option("--credit", settings.credit);
  app.add_option("--job-us", settings.job_us);
  app.add_option("--heartbeat-ms", settings.heartbeat_ms);
  app.add_flag("--tell-leases", settings.tell_leases);
  std::string keys;
  app.add_option("--keys", keys, "Of one worker, for all");
  CLI11_PARSE(app, argc, argv);
  if (!keys.empty()) {
    constexpr std::array kRoles = {wire::Role::kWorker};
    auto loaded = wire::LoadPeerKeys(keys, kRoles);
    LF_CHECK(loaded.has_value(), "{}", loaded.error().message);
    settings.keys = *std::move(loaded);
  }
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &descriptors);
  std::signal(SIGTERM, [](int) { stop_requested = 1; });
  std::signal(SIGUSR1, [](int) { jobs_end_at_once = 1; });
  log::Init("loopfleet-stub-fleet", log::Level::kError);
  StubFleet(settings).Run();
  return 0;
}

}  // namespace
}  // namespace loopfleet::worker

int main(int argc, char** argv) { return loopfleet::worker::Main(argc, argv); }
