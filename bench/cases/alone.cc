// One evaluation at a time, as a person at an editor or a single environment asks for it: how long
// until its figure is there, and whether it is the figure that the schedule has in a batch. Uses
// bench/corpus/agent_walks.jsonl, a real coordinator and a real worker; everything is fresh.
//
//   bench_alone [--jobs 100]

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "bench/corpus/corpus.h"
#include "bench/peers/c_peer.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/stopwatch.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "client/scratch_dir.h"
#include "common/base/quantile.h"
#include "common/job/loop_schedule.h"

namespace loopfleet::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Jobs = std::vector<JobSpec>;

constexpr std::size_t kPeerSchedules = 20;  // evenly spread; each takes 0.1 s

struct Pass {
  std::vector<double> elapsed_ns;  // by job; 0: no figure
  std::map<std::string, std::uint32_t> grades;
  std::vector<double> latency_ms;
};

Status Add(client::Client& client, const Jobs& jobs, Pass& pass) {
  std::vector<double> elapsed(jobs.size(), 0);
  const auto done = client.Evaluate(jobs, [&](const Outcome& outcome) {
    if (!outcome.evaluation.ok()) return;
    elapsed[outcome.job.index] = outcome.evaluation.measurement().elapsed_ns;
    ++pass.grades[std::string(EnumName(outcome.evaluation.measurement().grade))];
  });
  if (!done) return Fail(done.error().kind, done.error().message);
  pass.elapsed_ns.insert(pass.elapsed_ns.end(), elapsed.begin(), elapsed.end());
  return {};
}

Result<std::vector<double>> PeerLatencies(const Jobs& jobs) {
  LF_TRY(const auto scratch, client::ScratchDir::Create());
  std::vector<double> latencies;
  for (std::size_t i = 0; i < jobs.size();
       i += std::max<std::size_t>(1, jobs.size() / kPeerSchedules)) {
    const auto replayed = ReplayJob(jobs[i]);
    if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
    const auto start = Clock::now();
    LF_TRY([[maybe_unused]] const double elapsed, EvaluateInC(replayed->tree, scratch.path()));
    latencies.push_back(Since<std::milli>(start));
  }
  return latencies;
}

Status RunGroup(const std::string& group, const Jobs& jobs) {
  LF_TRY(auto cluster, client::LocalCluster::Start({.programs = client::OwnDirectory()}));
  auto client = client::Client::Connect({.address = cluster.address(), .program = "bench"});
  if (!client) return Fail(client.error().kind, client.error().message);
  Pass batch;
  LF_TRY_VOID(Add(*client, jobs, batch));
  Pass alone;
  for (const JobSpec& job : jobs) {
    const auto start = Clock::now();
    LF_TRY_VOID(Add(*client, {job}, alone));
    alone.latency_ms.push_back(Since<std::milli>(start));
  }
  LF_TRY(const std::vector<double> peer, PeerLatencies(jobs));
  std::vector<double> difference;  // relative, of the two figures of a schedule
  std::vector<double> ratio;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (batch.elapsed_ns[i] <= 0 || alone.elapsed_ns[i] <= 0) continue;
    ratio.push_back(alone.elapsed_ns[i] / batch.elapsed_ns[i]);
    difference.push_back(std::abs(ratio.back() - 1));
  }
  Print({.bench = "alone",
         .name = group + ", one at a time",
         .value = Quantile(alone.latency_ms, 0.5),
         .unit = "ms from submission to figure, median",
         .peer = "cc -O3 -march=native -shared, dlopen, 10 ms of timing, not verified; some of the "
                 "same schedules",
         .peer_value = Quantile(peer, 0.5),
         .details = {{"jobs", jobs.size()},
                     {"figures", ratio.size()},
                     {"p90", Quantile(alone.latency_ms, 0.9)},
                     {"p99", Quantile(alone.latency_ms, 0.99)},
                     {"max", Quantile(alone.latency_ms, 1)},
                     {"grades", alone.grades},
                     {"grades_in_batch", batch.grades},
                     {"alone_to_batch_median", Quantile(ratio, 0.5)},
                     {"difference_p50", Quantile(difference, 0.5)},
                     {"difference_p90", Quantile(difference, 0.9)}}});
  return {};
}

Status Run(std::size_t most) {
  LF_TRY(const Jobs corpus, ReadCorpus(LOOPFLEET_SOURCE_DIR "/bench/corpus/agent_walks.jsonl"));
  for (const std::string group : {"looptune", "mm64"}) {
    Jobs all;
    for (const JobSpec& job : corpus) {
      if (job.tag == '"' + group + '"') all.push_back(job);
    }
    // Evenly spread over the group.
    Jobs jobs;
    const std::size_t count = std::min(most, all.size());
    for (std::size_t i = 0; i < count; ++i) {
      jobs.push_back(all[i * all.size() / count]);
      jobs.back().freshness = Freshness::kMeasureAgain;
    }
    LF_TRY_VOID(RunGroup(group, jobs));
  }
  return {};
}

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) {
  std::size_t jobs = 100;
  CLI::App app("One evaluation at a time", "bench_alone");
  app.add_option("--jobs", jobs, "of each group")->check(CLI::Range(1, 1'000));
  CLI11_PARSE(app, argc, argv);
  if (const auto done = loopfleet::bench::Run(jobs); !done) {
    fmt::print(stderr, "bench alone: {}\n", done.error().message);
    return 1;
  }
  return 0;
}
