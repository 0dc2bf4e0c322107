// Evaluations per second of one worker: fresh and verified, through a real coordinator, over the
// committed corpora: walks of moves, swaps and splits, and uniform random walks over all actions
// (the groups looptune, mm64, mm512, mm1024, program and conv). Peers evaluate some of the same
// schedules, in turns with the worker, so that whatever slows the host slows all of them.
//
//   bench_evaluations [--only mm64_64_64,looptune] [--without-peers]
//   bench_evaluations --compiled-before [--cores 1] [--rounds 3]
//
// The second form measures what a faster compiler could gain: in each round a fresh cluster
// evaluates the corpus twice, the second time without compiling. With --cores 1 the client, the
// coordinator and the worker's processes share one core.

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/corpus/corpus.h"
#include "bench/peers/c_peer.h"
#include "bench/peers/halide_peer.h"
#include "bench/rigs/metrics_page.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/stopwatch.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "client/scratch_dir.h"
#include "common/job/loop_schedule.h"

namespace loopfleet::bench {
namespace {

constexpr std::size_t kWarmUpJobs = 16;
// A turn is this fraction of a case's walks, then each peer's share. More turns would follow the
// host more closely, but the worker is not fully busy at the start and end of a turn.
constexpr std::size_t kTurns = 4;
constexpr std::size_t kPeerSchedules = 5;  // in a turn; a peer takes 0.1 to 0.2 s for each

struct Options {
  std::vector<std::string> only;  // cases; empty: all
  bool with_peers = true;
  bool compiled_before = false;
  int cores = 2;  // 1: all processes share one
  int rounds = 3;
};

using Jobs = std::vector<JobSpec>;
using Clock = std::chrono::steady_clock;

constexpr const char* kNoFigure = "the host is too loud for a single figure";

struct Fresh {
  double seconds = 0;
  double measured_seconds = 0;  // spent timing kernels
  std::uint32_t failed = 0;
  std::uint32_t unstable = 0;   // no figure after three attempts, because the host was noisy
  std::uint32_t same_code = 0;  // of the figures: from a kernel with the same machine code
  std::vector<double> gflops;
  std::map<std::string, std::uint32_t> grades;
  double samples = 0;   // over all evaluations
  double accepted = 0;  // of those samples
  std::vector<double> compile_us;

  double per_second() const { return static_cast<double>(gflops.size()) / seconds; }
  double slot_busy() const { return measured_seconds / seconds; }
  void Add(const Fresh& more) {
    seconds += more.seconds;
    measured_seconds += more.measured_seconds;
    failed += more.failed;
    unstable += more.unstable;
    same_code += more.same_code;
    gflops.insert(gflops.end(), more.gflops.begin(), more.gflops.end());
    for (const auto& [grade, count] : more.grades) grades[grade] += count;
    samples += more.samples;
    accepted += more.accepted;
    compile_us.insert(compile_us.end(), more.compile_us.begin(), more.compile_us.end());
  }
};

client::Answer<Fresh> Evaluate(client::Client& client, const Jobs& jobs) {
  Fresh fresh;
  Nanos measured{0};
  const auto start = Clock::now();
  LF_TRY_VOID(client.Evaluate(jobs, [&](const Outcome& outcome) {
    const Evaluation& evaluation = outcome.evaluation;
    if (!evaluation.ok() || outcome.source != OutcomeSource::kMeasured) {
      const bool is_unstable =
          !evaluation.ok() && evaluation.failure().code == FailureCode::kUnstableTiming;
      ++(is_unstable ? fresh.unstable : fresh.failed);
      return;
    }
    fresh.gflops.push_back(GflopPerSecond(evaluation.flop_count, evaluation.measurement()));
    ++fresh.grades[std::string(EnumName(evaluation.measurement().grade))];
    fresh.same_code += evaluation.same_code ? 1 : 0;
    fresh.samples += static_cast<double>(evaluation.measurement().samples_ns.size());
    fresh.accepted += static_cast<double>(AcceptedSamples(evaluation.measurement()));
    measured += evaluation.stages[Stage::kMeasure];
    fresh.compile_us.push_back(
        std::chrono::duration<double, std::micro>(evaluation.stages[Stage::kCompile]).count());
  }));
  fresh.seconds = Since(start);
  fresh.measured_seconds = std::chrono::duration<double>(measured).count();
  return fresh;
}

// The seconds that peers took for some of the schedules.
struct PeerTimes {
  std::size_t schedules = 0;
  double cc = 0;
  std::optional<double> halide = 0;  // nullopt: not installed

  void Add(const PeerTimes& more) {
    schedules += more.schedules;
    cc += more.cc;
    halide = halide && more.halide ? std::optional(*halide + *more.halide) : std::nullopt;
  }
  double CcRate() const { return static_cast<double>(schedules) / cc; }
};

Result<PeerTimes> EvaluateByPeers(const Jobs& jobs, const std::filesystem::path& dir) {
  std::vector<looptree::LoopTree> trees;
  for (std::size_t i = 0; i < std::min(jobs.size(), kPeerSchedules); ++i) {
    const auto replayed = ReplayJob(jobs[i]);
    if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
    trees.push_back(replayed->tree);
  }
  const auto start = Clock::now();
  for (const looptree::LoopTree& tree : trees) {
    LF_TRY([[maybe_unused]] const double elapsed, EvaluateInC(tree, dir));
  }
  PeerTimes times{.schedules = trees.size(), .cc = Since(start)};
  LF_TRY(times.halide, HalideSeconds(trees, dir));
  return times;
}

nlohmann::ordered_json Distribution(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {{"min", values.front()}, {"p10", at(0.1)},  {"p50", at(0.5)},
          {"p90", at(0.9)},        {"p99", at(0.99)}, {"max", values.back()}};
}

// Time that kernels have used the timing core outside their timed batches, by stage.
struct SlotOverhead {
  std::map<std::string, double> seconds;
  double kernels = 0;
};
constexpr const char* kSlotOverhead = "slot_overhead";  // the total

Result<SlotOverhead> ReadSlotOverhead(client::Client& client) {
  const auto workers = client.ListWorkers();
  if (!workers || workers->workers.empty()) return Fail(ErrorKind::kNotFound, "there is no worker");
  LF_TRY(const auto metrics, ReadMetrics(workers->workers.front().http));
  const auto value = [&](const std::string& kind, const std::string& stage) {
    const auto found = metrics.find(
        fmt::format(R"(loopfleet_worker_stage_duration_seconds_{}{{stage="{}"}})", kind, stage));
    return found == metrics.end() ? 0.0 : found->second;
  };
  SlotOverhead overhead{.kernels = value("count", kSlotOverhead)};
  for (const char* stage : {kSlotOverhead, "slot_take", "slot_map", "slot_warm", "slot_probe",
                            "slot_clock", "slot_wait", "slot_try"}) {
    overhead.seconds[stage] = value("sum", stage);
  }
  return overhead;
}

// Microseconds per kernel between `before` and `after`.
nlohmann::ordered_json MeanOverhead(const SlotOverhead& before, const SlotOverhead& after) {
  nlohmann::ordered_json mean;
  for (const auto& [stage, seconds] : after.seconds) {
    mean[stage] = (seconds - before.seconds.at(stage)) / (after.kernels - before.kernels) * 1e6;
  }
  return mean;
}

Status RunCase(client::Client& client, const std::string& name, const Jobs& jobs, bool with_peers) {
  Jobs warm_up(jobs.begin(), jobs.begin() + std::min(jobs.size(), kWarmUpJobs));
  // Jobs that are not `fresh` would be answered from the store afterwards.
  for (JobSpec& job : warm_up) {
    if (job.freshness == Freshness::kMeasureAgain) continue;
    job.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm63_63_63"};
  }
  auto warmed = Evaluate(client, warm_up);
  if (!warmed) return Fail(warmed.error().kind, warmed.error().message);
  LF_TRY(const SlotOverhead before, ReadSlotOverhead(client));
  LF_TRY(const auto scratch, client::ScratchDir::Create());
  Fresh all;
  PeerTimes peers;
  std::vector<double> by_turn;
  std::vector<double> peer_by_turn;
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    const auto walk = [&](std::size_t number) {
      return jobs.begin() + static_cast<std::ptrdiff_t>(number * jobs.size() / kTurns);
    };
    const Jobs part(walk(turn), walk(turn + 1));
    const auto fresh = Evaluate(client, part);
    if (!fresh) return Fail(fresh.error().kind, fresh.error().message);
    all.Add(*fresh);
    by_turn.push_back(fresh->per_second());
    if (!with_peers) continue;
    LF_TRY(const PeerTimes times, EvaluateByPeers(part, scratch.path()));
    peers.Add(times);
    peer_by_turn.push_back(times.CcRate());
  }
  LF_TRY(const SlotOverhead after, ReadSlotOverhead(client));
  std::string peer;
  std::optional<double> peer_rate;
  nlohmann::ordered_json halide = nullptr;
  if (with_peers) {
    peer = fmt::format(
        "cc -O3 -march=native -shared, dlopen, 10 ms of timing, not verified; {} of "
        "the same schedules, in {} turns with ours",
        peers.schedules, kTurns);
    peer_rate = peers.CcRate();
    if (peers.halide) halide = static_cast<double>(peers.schedules) / *peers.halide;
  }
  if (all.gflops.empty() && all.failed == 0) return Fail(ErrorKind::kTimeout, kNoFigure);
  const auto evaluated = static_cast<double>(all.gflops.size());
  Print({.bench = "evaluations",
         .name = name,
         .value = all.per_second(),
         .unit = "evaluations/s",
         .peer = peer,
         .peer_value = peer_rate,
         .details = {{"halide_evaluations_per_second", halide},
                     {"by_turn", by_turn},
                     {"peer_by_turn", peer_by_turn},
                     {"evaluated", all.gflops.size()},
                     {"failed", all.failed},
                     {"unstable", all.unstable},
                     {"share_ok", evaluated / static_cast<double>(jobs.size())},
                     {"share_same_code", all.same_code / evaluated},
                     {"compile_us", Distribution(all.compile_us)},
                     {"gflop_per_second", Distribution(all.gflops)},
                     {"grades", all.grades},
                     {"samples", all.samples / evaluated},
                     {"accepted_samples", all.accepted / evaluated},
                     {"timing_share", all.slot_busy()},
                     {"outside_batches_us", MeanOverhead(before, after)}}});
  return {};
}

constexpr std::array kSizes = {"mm64_64_64", "mm128_128_128", "mm256_256_256"};
constexpr std::array kGroups = {"looptune", "mm64", "program", "mm512", "conv", "mm1024"};

std::vector<std::string> CaseNames() {
  std::vector<std::string> names(kSizes.begin(), kSizes.end());
  names.insert(names.end(), kGroups.begin(), kGroups.end());
  return names;
}

Result<std::map<std::string, Jobs>> ReadCases() {
  LF_TRY(const Jobs corpus, ReadCorpus(LOOPFLEET_SOURCE_DIR "/bench/corpus/matmul_walks.jsonl"));
  std::map<std::string, Jobs> cases;
  for (JobSpec job : corpus) {
    const std::string& uri = std::get<looptree::BenchmarkUri>(job.source).text;
    const std::string name = uri.substr(uri.rfind('/') + 1);
    job.freshness = Freshness::kMeasureAgain;
    cases[name].push_back(std::move(job));
  }
  // As users send them: not `fresh`, so that the worker may find that two have the same code.
  LF_TRY(const Jobs agent, ReadCorpus(LOOPFLEET_SOURCE_DIR "/bench/corpus/agent_walks.jsonl"));
  for (const JobSpec& job : agent) {
    cases[job.tag.substr(1, job.tag.size() - 2)].push_back(job);  // without the quotes
  }
  return cases;
}

client::Answer<client::Client> Connect(const client::LocalCluster& cluster) {
  return client::Client::Connect({.address = cluster.address(), .program = "bench"});
}

// Keeps the client and the coordinator off the worker's timing core, as if they ran on other hosts.
// The worker takes the last core that it may use and cannot move other programs.
Status LeaveTimingCore(const client::LocalCluster& cluster) {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) {
    return Fail(ErrorKind::kSystem, "sched_getaffinity failed");
  }
  if (CPU_COUNT(&cores) < 2) return {};
  std::size_t last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &cores)) --last;
  CPU_CLR(last, &cores);
  for (const pid_t process : {::getpid(), cluster.coordinator_pid()}) {
    for (const auto& thread :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process))) {
      const pid_t id = std::stoi(thread.path().filename());
      if (::sched_setaffinity(id, sizeof cores, &cores) != 0) {
        return Fail(ErrorKind::kSystem, "sched_setaffinity refused the other cores");
      }
    }
  }
  return {};
}

// A cluster for each case, so that none is answered by what another one stored.
Status RunRates(const Options& options) {
  LF_TRY(auto cases, ReadCases());
  cpu_set_t all;  // LeaveTimingCore takes one away, and a cluster inherits what is left
  if (::sched_getaffinity(0, sizeof all, &all) != 0) {
    return Fail(ErrorKind::kSystem, "sched_getaffinity failed");
  }
  for (const std::string& name : CaseNames()) {
    if (::sched_setaffinity(0, sizeof all, &all) != 0) {
      return Fail(ErrorKind::kSystem, "sched_setaffinity refused the cores of the start");
    }
    if (!options.only.empty() && std::ranges::find(options.only, name) == options.only.end()) {
      continue;
    }
    LF_TRY(auto cluster, client::LocalCluster::Start({.programs = client::OwnDirectory()}));
    LF_TRY_VOID(LeaveTimingCore(cluster));
    auto client = Connect(cluster);
    if (!client) return Fail(client.error().kind, client.error().message);
    // Halide's generator knows matrix products only.
    const bool has_peers = name != "program" && name != "conv";
    LF_TRY_VOID(RunCase(*client, name, cases[name], options.with_peers && has_peers));
  }
  return {};
}

// -------------------------------------------------------------- what a faster compiler could gain

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// The figures of successive passes.
struct Passes {
  std::vector<double> per_second;
  std::vector<double> slot_busy;
  std::vector<double> compile_us;  // the medians
  std::vector<double> grade_a;     // shares; they show how quiet the host was

  Status Add(const client::Answer<Fresh>& fresh) {
    if (!fresh) return Fail(fresh.error().kind, fresh.error().message);
    if (fresh->failed > 0) {
      return Fail(ErrorKind::kCorrupt, fmt::format("{} jobs of the corpus failed", fresh->failed));
    }
    if (fresh->gflops.empty()) return Fail(ErrorKind::kTimeout, kNoFigure);
    per_second.push_back(fresh->per_second());
    slot_busy.push_back(fresh->slot_busy());
    compile_us.push_back(MedianOf(fresh->compile_us));
    const auto graded = fresh->grades.find(std::string(EnumName(Grade::kA)));
    const double is_a = graded == fresh->grades.end() ? 0 : graded->second;
    grade_a.push_back(is_a / static_cast<double>(fresh->gflops.size()));
    return {};
  }
};

struct Comparison {
  Passes compiling;
  Passes compiled_before;
};

Status CompareOnce(std::map<std::string, Jobs>& cases, std::map<std::string, Comparison>& found) {
  LF_TRY(auto cluster,
         client::LocalCluster::Start({.programs = client::OwnDirectory(),
                                      .worker_program = "bench_compiled_before_worker"}));
  auto client = Connect(cluster);
  if (!client) return Fail(client.error().kind, client.error().message);
  for (const std::string name : kSizes) {
    const auto rest = cases[name].begin() + kWarmUpJobs;
    LF_TRY_VOID(Passes().Add(Evaluate(*client, Jobs(cases[name].begin(), rest))));
    const Jobs jobs(rest, cases[name].end());
    LF_TRY_VOID(found[name].compiling.Add(Evaluate(*client, jobs)));
    LF_TRY_VOID(found[name].compiled_before.Add(Evaluate(*client, jobs)));
  }
  return {};
}

Status ShareOneCore() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  if (::sched_setaffinity(0, sizeof one, &one) == 0) return {};
  return Fail(ErrorKind::kSystem, "sched_setaffinity refused a single core");
}

Status RunCompiledBefore(const Options& options) {
  LF_TRY(auto cases, ReadCases());
  if (options.cores == 1) LF_TRY_VOID(ShareOneCore());  // all daemons inherit it
  std::map<std::string, Comparison> found;
  for (int round = 0; round < options.rounds; ++round) LF_TRY_VOID(CompareOnce(cases, found));
  for (const std::string name : kSizes) {
    const auto& [compiling, before] = found[name];
    std::vector<double> ratios;
    for (std::size_t i = 0; i < before.per_second.size(); ++i) {
      ratios.push_back(before.per_second[i] / compiling.per_second[i]);
    }
    Print({.bench = "evaluations",
           .name = fmt::format("compiled_before {} on {} core{}", name, options.cores,
                               options.cores == 1 ? "" : "s"),
           .value = MedianOf(before.per_second),
           .unit = "evaluations/s",
           .peer = "the same schedules right before, each compiled",
           .peer_value = MedianOf(compiling.per_second),
           .details = {{"ratios", ratios},
                       {"compile_us", MedianOf(before.compile_us)},
                       {"peer_compile_us", MedianOf(compiling.compile_us)},
                       {"timing_share", MedianOf(before.slot_busy)},
                       {"peer_timing_share", MedianOf(compiling.slot_busy)},
                       {"grade_a", before.grade_a},
                       {"peer_grade_a", compiling.grade_a}}});
  }
  return {};
}

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  using loopfleet::bench::Options;
  Options options;
  CLI::App app("Fresh, verified evaluations per second", "bench_evaluations");
  app.add_option("--only", options.only, "these cases alone")
      ->delimiter(',')
      ->check(CLI::IsMember(loopfleet::bench::CaseNames()));
  app.add_flag("!--without-peers", options.with_peers, "nothing but the worker's own rate");
  auto* const before = app.add_flag("--compiled-before", options.compiled_before,
                                    "what a compiler that takes no time would gain");
  app.add_option("--cores", options.cores, "1: all processes share one core")
      ->needs(before)
      ->check(CLI::Range(1, 2));
  app.add_option("--rounds", options.rounds)->needs(before)->check(CLI::Range(1, 100));
  CLI11_PARSE(app, argc, argv);
  const auto status = options.compiled_before ? loopfleet::bench::RunCompiledBefore(options)
                                              : loopfleet::bench::RunRates(options);
  if (status) return 0;
  fmt::print(stderr, "bench evaluations: {}\n", status.error().message);
  return 1;
}
