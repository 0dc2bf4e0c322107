// What the heaviest loads that clients and workers may put on a coordinator cost it and everybody
// else: its longest event and commit, and how long another client's small requests take. The real
// daemon, a real database, and workers that speak the real protocol and measure nothing. The peer
// of a wait is the same request while nothing else happens; a coordinator's events should end
// within 5 ms (99.9 %) and 20 ms (all), and small requests within 20 ms (99 %).

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/rigs/disk_flushes.h"
#include "bench/rigs/event_times.h"
#include "bench/rigs/queue_rig.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/stopwatch.h"
#include "bench/rigs/stored_results.h"
#include "bench/rigs/stub_workers.h"
#include "bench/rigs/unique_tree.h"
#include "common/base/check.h"
#include "common/base/quantile.h"
#include "common/base/random.h"
#include "common/wire/codec/codec.h"
#include "common/wire/transport/poller.h"
#include "storage/sqlite/sqlite_reader.h"
#include "storage/sqlite/sqlite_store.h"

namespace loopfleet::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr double kEventGoalMs = 5;
constexpr double kWaitGoalMs = 20;
constexpr std::uint32_t kJobsPerMessage = 4'096;  // as many as a message may have
constexpr milliseconds kPause{10};                // between the neighbour's requests

struct Options {
  std::vector<std::string> only;
  std::uint64_t stored = 1'000'000;
  std::uint64_t queued = 1'000'000;
  double seconds = 12;  // of each load
};

// How long a small client's requests took.
struct Waits {
  std::vector<double> status_ms;
  std::vector<double> accepted_ms;  // of one job, until it is on disk
};

Result<Waits> AskLittle(const QueueRig& rig, double seconds) {
  LF_TRY(auto client, rig.Connect());
  const std::vector<JobSpec> one = {NullJob()};
  Waits waits;
  const auto start = SteadyClock::now();
  while (Since(start) < seconds) {
    std::this_thread::sleep_for(kPause);
    const auto asked = SteadyClock::now();
    const auto fleet = client.ShowFleet({});
    if (!fleet) return std::unexpected(ToError(fleet.error()));
    waits.status_ms.push_back(Since<std::milli>(asked));
    std::this_thread::sleep_for(kPause);
    const auto sent = SteadyClock::now();
    const auto batch = client.Submit(one);
    if (!batch) return std::unexpected(ToError(batch.error()));
    waits.accepted_ms.push_back(Since<std::milli>(sent));
  }
  return waits;
}

// Runs `step` again and again on a thread of its own.
class Load {
 public:
  using Step = std::function<Status()>;
  explicit Load(Step step) : step_(std::move(step)), thread_([this] { Run(); }) {}
  ~Load() {
    stopping_ = true;
    thread_.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  std::uint64_t steps() const { return steps_; }

 private:
  void Run() {
    while (!stopping_) {
      const Status done = step_();
      LF_CHECK(done.has_value(), "{}", done.error().message);
      ++steps_;
    }
  }

  Step step_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> steps_ = 0;
  std::thread thread_;
};

// A worker that takes leases and never reports, and whose canaries drift and recover on demand.
class Sleeper {
 public:
  Sleeper(const std::string& coordinator, std::string name)
      : dealer_(wire::Dealer::Connect(context_, coordinator).value()),
        hello_(AnswerTo(RepeatableJob(0)).hello) {
    hello_.worker = Uuid::Random();
    hello_.name = std::move(name);
    poller_.Add(dealer_);
    Send(hello_);
  }

  // Listens for a while, with heartbeats that say this of its canaries.
  void Beat(wire::CanaryState canary, Nanos duration) {
    const auto end = SteadyClock::now() + duration;
    while (SteadyClock::now() < end) {
      wire::Heartbeat heartbeat{.held = held_, .canary_ratio = 1, .canary = canary};
      if (canary == wire::CanaryState::kDrifting) {
        heartbeat.canary_ratio = 1.5;
        heartbeat.steady_since_ms = 3'600'000;
      }
      Send(heartbeat);
      poller_.Wait(milliseconds(250));
      while (const auto frame = dealer_.Receive()) Hear(*frame);
    }
  }

 private:
  void Hear(const std::string& frame) {
    const auto command = wire::DecodeWorkerCommand(frame);
    LF_CHECK(command.has_value(), "{}", command.error().message);
    if (std::holds_alternative<wire::HelloWanted>(*command)) Send(hello_);
    if (const auto* leases = std::get_if<wire::Leases>(&*command)) {
      for (const wire::Lease& lease : leases->leases) held_.push_back(lease.lease);
    }
  }
  void Send(const wire::WorkerMessage& message) {
    LF_CHECK(dealer_.Send(wire::Encode(message)) == wire::SendResult::kSent, "a full socket");
  }

  wire::Context context_;
  wire::Dealer dealer_;
  wire::Poller poller_;
  wire::WorkerHello hello_;
  std::vector<LeaseId> held_;
};

void PrintWaits(const std::string& load, const Waits& waits, const Waits& alone,
                const nlohmann::ordered_json& details) {
  const auto print = [&](std::string_view what, const std::vector<double>& ms,
                         const std::vector<double>& alone_ms) {
    Print({.bench = "bounds",
           .name = fmt::format("{}: {} p99", load, what),
           .value = Quantile(ms, 0.99),
           .unit = "ms",
           .peer = "nothing else happens",
           .peer_value = Quantile(alone_ms, 0.99),
           .details = details});
  };
  print("status", waits.status_ms, alone.status_ms);
  print("one job accepted", waits.accepted_ms, alone.accepted_ms);
}

Status PrintTails(const std::string& load, const EventTimes& times, double longest_flush_ms) {
  LF_TRY(const Tail events, times.Events());
  LF_TRY(const Tail commits, times.Commits());
  const auto print = [&](std::string_view what, double ms, double goal_ms,
                         nlohmann::ordered_json details = nlohmann::ordered_json::object()) {
    Print({.bench = "bounds",
           .name = fmt::format("{}: {}", load, what),
           .value = ms,
           .unit = "ms at most",
           .peer = "the goal",
           .peer_value = goal_ms,
           .details = std::move(details)});
  };
  print("event p99.9", events.p999_ms, kEventGoalMs);
  print("longest event", events.longest_ms, kWaitGoalMs, {{"kind", events.longest_kind}});
  print("longest commit", commits.longest_ms, 50,
        {{"longest_flush_of_a_page_beside_it_ms", longest_flush_ms}});
  return {};
}

// Measures the neighbour and the coordinator while `load` runs.
Status MeasureUnder(const std::string& name, const QueueRig& rig, const Waits& alone,
                    double seconds, Load::Step step) {
  LF_TRY(const EventTimes times, EventTimes::Begin(rig.cluster().http()));
  LF_TRY(const auto flushes, DiskFlushes::Start(rig.database()));
  Load load(std::move(step));
  LF_TRY(const Waits waits, AskLittle(rig, seconds));
  PrintWaits(name, waits, alone, {{"requests", waits.status_ms.size()}, {"steps", load.steps()}});
  return PrintTails(name, times, flushes->longest_ms());
}

// Jobs of as many trees as a message has, each with so many stored results that are not precise
// enough: all are looked at.
Status MeasureOldResults(const Options& options) {
  constexpr std::uint64_t kRowsPerTree = 64;
  const Evaluation like = AnswerTo(RepeatableJob(0)).evaluation;
  LF_TRY(const QueueRig rig, QueueRig::Start({.fill = [&](const auto& database) {
           return FillWithResults(
               database, like, {.rows = kJobsPerMessage * kRowsPerTree, .trees = kJobsPerMessage});
         }}));
  const StubWorkers stubs({.coordinator = rig.cluster().worker_address()});
  LF_TRY(const Waits alone, AskLittle(rig, options.seconds / 4));
  std::vector<JobSpec> jobs;
  for (std::uint32_t i = 0; i < kJobsPerMessage; ++i) {
    jobs.push_back(RepeatableJob(i));
    jobs.back().precision = 0.001;
  }
  LF_TRY(auto client, rig.Connect());
  return MeasureUnder("old-results", rig, alone, options.seconds, [&]() -> Status {
    const auto batch = client.Submit(jobs);
    if (!batch) return std::unexpected(ToError(batch.error()));
    return AwaitStored(client, *batch);
  });
}

// A thousand workers idle, and as many demands wait that none of them serves.
Status MeasureLabels(const Options& options) {
  constexpr std::uint32_t kWorkers = 1'000;
  constexpr std::uint32_t kDemands = 999;  // the neighbour's jobs are one more
  constexpr std::uint32_t kLabels = 61;
  LF_TRY(const QueueRig rig, QueueRig::Start());
  std::vector<std::string> carried;
  for (std::uint32_t i = 0; i + 1 < kLabels; ++i) carried.push_back(fmt::format("label-{}", i));
  const StubWorkers stubs({.coordinator = rig.cluster().worker_address(),
                           .workers = kWorkers,
                           .credit = 1,
                           .labels = carried});
  std::this_thread::sleep_for(std::chrono::seconds(3));
  LF_TRY(const Waits alone, AskLittle(rig, options.seconds / 4));
  LF_TRY(auto client, rig.Connect());
  std::vector<JobSpec> unserved;
  for (std::uint32_t i = 0; i < kDemands; ++i) {
    unserved.push_back(NullJob());
    unserved.back().labels = carried;
    unserved.back().labels.push_back(fmt::format("nowhere-{}", i));
  }
  if (const auto batch = client.Submit(unserved); !batch) {
    return std::unexpected(ToError(batch.error()));
  }
  const std::vector<JobSpec> one = {NullJob()};
  return MeasureUnder("labels", rig, alone, options.seconds, [&]() -> Status {
    const auto batch = client.Submit(one);
    if (!batch) return std::unexpected(ToError(batch.error()));
    return {};
  });
}

// A worker drifts and recovers as often as it may, and all stored results are its own and new.
Status MeasureDrift(const Options& options) {
  constexpr milliseconds kPhase{5'500};  // beyond Limits::min_drift
  const std::string name = "drifter";
  const Evaluation like = AnswerTo(RepeatableJob(0)).evaluation;
  LF_TRY(const QueueRig rig, QueueRig::Start({.fill = [&](const auto& database) {
           return FillWithResults(database, like, {.rows = options.stored, .worker = name});
         }}));
  const StubWorkers stubs({.coordinator = rig.cluster().worker_address()});
  Sleeper drifter(rig.cluster().worker_address(), name);
  LF_TRY(const Waits alone, AskLittle(rig, options.seconds / 4));
  return MeasureUnder("drift", rig, alone, options.seconds, [&]() -> Status {
    drifter.Beat(wire::CanaryState::kSteady, kPhase);
    drifter.Beat(wire::CanaryState::kDrifting, kPhase);
    return {};
  });
}

// Very many jobs of one client wait.
Status MeasureQueued(const Options& options) {
  constexpr std::uint64_t kJobsPerBatch = 100'000;
  const std::string most = fmt::format("{}", 2 * options.queued);
  LF_TRY(QueueRig rig,
         QueueRig::Start({.arguments = {"--max-jobs", most, "--max-jobs-per-client", most,
                                        "--max-bytes-per-client", "64GiB", "--memory", "64GiB"}}));
  std::optional<Sleeper> sleeper(std::in_place, rig.cluster().worker_address(), "sleeper");
  LF_TRY(const Waits alone, AskLittle(rig, options.seconds / 4));
  LF_TRY(auto client, rig.Connect());
  const std::vector<JobSpec> jobs(kJobsPerBatch, NullJob());
  for (std::uint64_t rest = options.queued; rest > 0;) {
    const std::uint64_t count = std::min<std::uint64_t>(rest, jobs.size());
    const auto batch = client.Submit(std::span(jobs).first(count));
    if (!batch) return std::unexpected(ToError(batch.error()));
    rest -= count;
  }
  LF_TRY_VOID(MeasureUnder("queued", rig, alone, options.seconds, [&]() -> Status {
    sleeper->Beat(wire::CanaryState::kSteady, milliseconds(500));
    return {};
  }));
  sleeper.reset();
  const auto start = SteadyClock::now();
  LF_TRY_VOID(rig.Restart());
  Print({.bench = "bounds",
         .name = "queued: ready after a kill",
         .value = Since(start),
         .unit = "s",
         .peer = "the goal",
         .peer_value = 2,
         .details = {{"queued", options.queued}}});
  return {};
}

// Microseconds for each look-up, in a store of so many results.
struct LookUps {
  double any_us = 0;     // of random ones
  double newest_us = 0;  // of random ones among the newest kNewest
  double absent_us = 0;  // of trees that were never measured
};
constexpr std::uint64_t kNewest = 100'000;

Result<double> LookUp(storage::StoreReader& reader, const Conditions& conditions,
                      std::uint64_t first_row, std::uint64_t rows, bool is_stored) {
  constexpr int kLookups = 20'000;
  SplitMix64 random(7);
  const auto start = SteadyClock::now();
  for (int i = 0; i < kLookups; ++i) {
    LF_TRY(const auto found,
           reader.FindResult({.subject = UniqueTree(first_row + random.Below(rows)),
                              .hardware_class = conditions.hardware.hardware_class,
                              .compiler = conditions.compiler,
                              .threads = conditions.threads,
                              .cache = conditions.cache,
                              .policy = conditions.policy}));
    if ((found != nullptr) != is_stored) {
      return Fail(ErrorKind::kCorrupt, "a look-up found the wrong thing");
    }
  }
  return Since<std::micro>(start) / kLookups;
}

Result<LookUps> LookUpAll(const std::filesystem::path& database, const Conditions& conditions,
                          std::uint64_t rows) {
  LF_TRY(const auto store, storage::SqliteStore::Open(database));
  LF_TRY(const auto reader, storage::SqliteReader::Open(database, store->result_keys()));
  const std::uint64_t newest = std::min(rows, kNewest);
  LookUps times;
  LF_TRY(times.absent_us, LookUp(*reader, conditions, rows, rows, false));
  LF_TRY(times.any_us, LookUp(*reader, conditions, 0, rows, true));
  LF_TRY(times.newest_us, LookUp(*reader, conditions, rows - newest, newest, true));
  return times;
}

// A store of very many results: the restart on it, and the price of looking something up.
Status MeasureStored(const Options& options) {
  const std::uint64_t few = std::min<std::uint64_t>(options.stored, 1'000'000);
  const Evaluation like = AnswerTo(RepeatableJob(0)).evaluation;
  const auto fill = [&](std::uint64_t rows, LookUps& times, double& seconds) {
    return [&, rows](const std::filesystem::path& database) -> Status {
      const auto start = SteadyClock::now();
      LF_TRY_VOID(FillWithResults(database, like, {.rows = rows}));
      seconds = Since(start);
      LF_TRY(times, LookUpAll(database, *like.conditions, rows));
      return {};
    };
  };
  LookUps of_few;
  LookUps of_many;
  double few_seconds = 0;
  double many_seconds = 0;
  {
    LF_TRY(const QueueRig rig, QueueRig::Start({.fill = fill(few, of_few, few_seconds)}));
  }
  LF_TRY(QueueRig rig, QueueRig::Start({.fill = fill(options.stored, of_many, many_seconds)}));
  const nlohmann::ordered_json details{{"stored", options.stored},
                                       {"bytes", std::filesystem::file_size(rig.database())}};
  const std::string peer = fmt::format("with {} results", few);
  const auto print = [&](std::string_view what, double value, double peer_value, std::string unit) {
    Print({.bench = "bounds",
           .name = fmt::format("stored: {}", what),
           .value = value,
           .unit = std::move(unit),
           .peer = peer,
           .peer_value = peer_value,
           .details = details});
  };
  print("look up any result", of_many.any_us, of_few.any_us, "us");
  print("look up a new result", of_many.newest_us, of_few.newest_us, "us");
  print("look up what is not there", of_many.absent_us, of_few.absent_us, "us");
  print("write a result", many_seconds * 1e6 / static_cast<double>(options.stored),
        few_seconds * 1e6 / static_cast<double>(few), "us");
  const auto start = SteadyClock::now();
  LF_TRY_VOID(rig.Restart());
  Print({.bench = "bounds",
         .name = "stored: ready after a kill",
         .value = Since(start),
         .unit = "s",
         .peer = "the goal",
         .peer_value = 2,
         .details = details});
  return {};
}

Status Run(const Options& options) {
  const std::pair<const char*, Status (*)(const Options&)> cases[] = {
      {"old-results", MeasureOldResults},
      {"labels", MeasureLabels},
      {"drift", MeasureDrift},
      {"queued", MeasureQueued},
      {"stored", MeasureStored}};
  for (const auto& [name, measure] : cases) {
    if (!options.only.empty() && std::ranges::find(options.only, name) == options.only.end()) {
      continue;
    }
    LF_TRY_VOID(measure(options));
  }
  return {};
}

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  loopfleet::bench::Options options;
  CLI::App app("What the heaviest loads cost a coordinator and its other clients", "bench_bounds");
  app.add_option("--only", options.only, "Loads to measure; all if not given")
      ->delimiter(',')
      ->check(CLI::IsMember({"old-results", "labels", "drift", "queued", "stored"}));
  app.add_option("--stored", options.stored, "Stored results (drift, stored)")
      ->capture_default_str();
  app.add_option("--queued", options.queued, "Queued jobs (queued)")->capture_default_str();
  app.add_option("--seconds", options.seconds, "Of each load")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (const auto status = loopfleet::bench::Run(options); !status) {
    fmt::print(stderr, "bench bounds: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
