// How many evaluations a second one worker gives: fresh and verified, through a real coordinator,
// over the committed corpus. The peer evaluates some of the same schedules in the same run.
//
//   bench_evaluations [--only mm64_64_64,mm128_128_128] [--without-peers]
//   bench_evaluations --compiled-before [--cores 1] [--rounds 3]
//
// The second asks what a quicker compiler could gain: each round has a fresh cluster evaluate the
// corpus twice, and the second time nothing is compiled any more. With --cores 1 the client, the
// coordinator and all of the worker share one core.

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
#include <variant>
#include <vector>

#include "bench/c_peer.h"
#include "bench/corpus.h"
#include "bench/halide_peer.h"
#include "bench/metrics_page.h"
#include "bench/result_line.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "client/scratch_dir.h"

namespace loopfleet::bench {
namespace {

constexpr std::size_t kWarmUpJobs = 16;
constexpr std::size_t kPeerSchedules = 20;  // it takes about 0.1 s for each

struct Options {
  std::vector<std::string> only;  // sizes; empty: all
  bool with_peers = true;
  bool compiled_before = false;
  int cores = 2;  // 1: all processes share one
  int rounds = 3;
};

using Jobs = std::vector<JobSpec>;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Fresh {
  double per_second = 0;
  std::uint32_t failed = 0;
  std::vector<double> gflops;  // ascending
  std::map<std::string, std::uint32_t> grades;
  double samples = 0;    // of all evaluations
  double accepted = 0;   // of these
  double slot_busy = 0;  // share of the time in which kernels were timed
  std::vector<double> compile_us;  // ascending
};

client::Answer<Fresh> Evaluate(client::Client& client, const Jobs& jobs) {
  Fresh fresh;
  Nanos measured{0};
  const auto start = Clock::now();
  LF_TRY_VOID(client.Evaluate(jobs, [&](const Outcome& outcome) {
    const Evaluation& evaluation = outcome.evaluation;
    if (!evaluation.ok() || outcome.source != OutcomeSource::kMeasured) {
      ++fresh.failed;
      return;
    }
    fresh.gflops.push_back(GflopPerSecond(evaluation.flop_count, evaluation.measurement()));
    ++fresh.grades[std::string(GradeName(evaluation.measurement().grade))];
    fresh.samples += static_cast<double>(evaluation.measurement().samples_ns.size());
    fresh.accepted += static_cast<double>(AcceptedSamples(evaluation.measurement()));
    measured += evaluation.stages[Stage::kMeasure];
    fresh.compile_us.push_back(
        std::chrono::duration<double, std::micro>(evaluation.stages[Stage::kCompile]).count());
  }));
  const double seconds = SecondsSince(start);
  std::ranges::sort(fresh.gflops);
  std::ranges::sort(fresh.compile_us);
  fresh.per_second = static_cast<double>(fresh.gflops.size()) / seconds;
  fresh.slot_busy = std::chrono::duration<double>(measured).count() / seconds;
  return fresh;
}

struct PeerRates {
  std::optional<double> cc;
  std::optional<double> halide;  // none: it is not installed here
};

Result<PeerRates> EvaluateByPeers(const Jobs& jobs) {
  std::vector<looptree::LoopTree> trees;
  for (std::size_t i = 0; i < std::min(jobs.size(), kPeerSchedules); ++i) {
    const auto replayed = ReplayJob(jobs[i]);
    if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
    trees.push_back(replayed->tree);
  }
  LF_TRY(const auto scratch, client::ScratchDir::Create());
  const auto start = Clock::now();
  for (const looptree::LoopTree& tree : trees) {
    LF_TRY([[maybe_unused]] const double elapsed, EvaluateInC(tree, scratch.path()));
  }
  PeerRates rates{.cc = static_cast<double>(trees.size()) / SecondsSince(start)};
  LF_TRY(rates.halide, HalideRate(trees, scratch.path()));
  return rates;
}

nlohmann::ordered_json Distribution(const std::vector<double>& sorted) {
  if (sorted.empty()) return nullptr;
  const auto at = [&](double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  return {{"min", sorted.front()},
          {"p10", at(0.1)},
          {"p50", at(0.5)},
          {"p90", at(0.9)},
          {"max", sorted.back()}};
}

// What kernels took of the timing core so far, outside their timed batches: by stage.
struct SlotOverhead {
  std::map<std::string, double> seconds;
  double kernels = 0;
};
constexpr const char* kSlotOverhead = "slot_overhead";  // all of it

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

// For each kernel, in microseconds, from `before` to `after`.
nlohmann::ordered_json MeanOverhead(const SlotOverhead& before, const SlotOverhead& after) {
  nlohmann::ordered_json mean;
  for (const auto& [stage, seconds] : after.seconds) {
    mean[stage] = (seconds - before.seconds.at(stage)) / (after.kernels - before.kernels) * 1e6;
  }
  return mean;
}

Status RunCase(client::Client& client, const std::string& name, const Jobs& jobs,
               bool with_peers) {
  const Jobs warm_up(jobs.begin(), jobs.begin() + std::min(jobs.size(), kWarmUpJobs));
  auto warmed = Evaluate(client, warm_up);
  if (!warmed) return Fail(warmed.error().kind, warmed.error().message);
  LF_TRY(const SlotOverhead before, ReadSlotOverhead(client));
  const auto fresh = Evaluate(client, jobs);
  if (!fresh) return Fail(fresh.error().kind, fresh.error().message);
  LF_TRY(const SlotOverhead after, ReadSlotOverhead(client));
  PeerRates peers;
  if (with_peers) {
    LF_TRY(peers, EvaluateByPeers(jobs));
  }
  nlohmann::ordered_json halide = nullptr;
  if (peers.halide) halide = *peers.halide;
  const auto evaluated = static_cast<double>(fresh->gflops.size());
  Print({.bench = "evaluations",
         .name = name,
         .value = fresh->per_second,
         .unit = "evaluations/s",
         .peer = fmt::format("cc -O3 -march=native -shared, dlopen, 10 ms of timing, not verified; "
                             "the first {} schedules",
                             std::min(jobs.size(), kPeerSchedules)),
         .peer_value = peers.cc,
         .details = {{"halide_evaluations_per_second", halide},
                     {"evaluated", fresh->gflops.size()},
                     {"failed", fresh->failed},
                     {"gflop_per_second", Distribution(fresh->gflops)},
                     {"grades", fresh->grades},
                     {"samples", fresh->samples / evaluated},
                     {"accepted_samples", fresh->accepted / evaluated},
                     {"timing_share", fresh->slot_busy},
                     {"outside_batches_us", MeanOverhead(before, after)}}});
  if (fresh->failed > 0) {
    return Fail(ErrorKind::kCorrupt,
                fmt::format("{}: {} jobs of the corpus failed", name, fresh->failed));
  }
  return {};
}

constexpr std::array kSizes = {"mm64_64_64", "mm128_128_128", "mm256_256_256"};

Result<std::map<std::string, Jobs>> ReadCases() {
  LF_TRY(const Jobs corpus, ReadCorpus(LOOPFLEET_SOURCE_DIR "/bench/corpus/matmul_walks.jsonl"));
  std::map<std::string, Jobs> cases;
  for (JobSpec job : corpus) {
    const std::string& uri = std::get<looptree::BenchmarkUri>(job.source).text;
    const std::string name = uri.substr(uri.rfind('/') + 1);
    job.freshness = Freshness::kMeasureAnew;
    cases[name].push_back(std::move(job));
  }
  return cases;
}

client::Answer<client::Client> Connect(const client::LocalCluster& cluster) {
  return client::Client::Connect({.address = cluster.address(), .program = "bench"});
}

// The client and the coordinator leave the worker's timing core alone, as on hosts where they are
// elsewhere: the worker takes the last core that it may use, and cannot move other programs.
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

Status RunRates(const Options& options) {
  LF_TRY(auto cases, ReadCases());
  LF_TRY(auto cluster, client::LocalCluster::Start({.programs = client::OwnDirectory()}));
  LF_TRY_VOID(LeaveTimingCore(cluster));
  auto client = Connect(cluster);
  if (!client) return Fail(client.error().kind, client.error().message);
  for (const std::string name : kSizes) {
    if (!options.only.empty() && std::ranges::find(options.only, name) == options.only.end()) {
      continue;
    }
    LF_TRY_VOID(RunCase(*client, name, cases[name], options.with_peers));
  }
  return {};
}

// ------------------------------------------------------------- what a quicker compiler could gain

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// What one pass after another gave.
struct Passes {
  std::vector<double> per_second;
  std::vector<double> slot_busy;
  std::vector<double> compile_us;  // the medians
  std::vector<double> grade_a;     // shares: how quiet the host was

  Status Add(const client::Answer<Fresh>& fresh) {
    if (!fresh) return Fail(fresh.error().kind, fresh.error().message);
    if (fresh->failed > 0) {
      return Fail(ErrorKind::kCorrupt, fmt::format("{} jobs of the corpus failed", fresh->failed));
    }
    per_second.push_back(fresh->per_second);
    slot_busy.push_back(fresh->slot_busy);
    compile_us.push_back(MedianOf(fresh->compile_us));
    const auto graded = fresh->grades.find(std::string(GradeName(Grade::kA)));
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
  const std::vector<std::string> sizes(loopfleet::bench::kSizes.begin(),
                                       loopfleet::bench::kSizes.end());
  app.add_option("--only", options.only, "these sizes alone")
      ->delimiter(',')
      ->check(CLI::IsMember(sizes));
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
