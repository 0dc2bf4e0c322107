// How many evaluations a second one worker gives: fresh and verified, through a real coordinator,
// over the committed corpus. The peer evaluates some of the same schedules in the same run.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "bench/c_peer.h"
#include "bench/corpus.h"
#include "bench/metrics_page.h"
#include "bench/result_line.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "client/scratch_dir.h"

namespace loopfleet::bench {
namespace {

constexpr std::size_t kWarmUpJobs = 16;
constexpr std::size_t kPeerSchedules = 20;  // it takes about 0.1 s for each

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
  double slot_busy = 0;  // share of the time in which kernels were timed
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
    measured += evaluation.stages[Stage::kMeasure];
  }));
  const double seconds = SecondsSince(start);
  std::ranges::sort(fresh.gflops);
  fresh.per_second = static_cast<double>(fresh.gflops.size()) / seconds;
  fresh.slot_busy = std::chrono::duration<double>(measured).count() / seconds;
  return fresh;
}

Result<double> PeerRate(const Jobs& jobs) {
  LF_TRY(const auto scratch, client::ScratchDir::Create());
  const std::size_t count = std::min(jobs.size(), kPeerSchedules);
  const auto start = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    const auto replayed = ReplayJob(jobs[i]);
    if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
    LF_TRY([[maybe_unused]] const double elapsed, EvaluateInC(replayed->tree, scratch.path()));
  }
  return static_cast<double>(count) / SecondsSince(start);
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

// What kernels took of the timing core so far, outside their timed batches.
struct SlotOverhead {
  double seconds = 0;
  double kernels = 0;
};

Result<SlotOverhead> ReadSlotOverhead(client::Client& client) {
  const auto workers = client.ListWorkers();
  if (!workers || workers->workers.empty()) return Fail(ErrorKind::kNotFound, "there is no worker");
  LF_TRY(const auto metrics, ReadMetrics(workers->workers.front().http));
  const auto value = [&](const std::string& kind) {
    const auto found = metrics.find(fmt::format(
        R"(loopfleet_worker_stage_duration_seconds_{}{{stage="slot_overhead"}})", kind));
    return found == metrics.end() ? 0.0 : found->second;
  };
  return SlotOverhead{.seconds = value("sum"), .kernels = value("count")};
}

Status RunCase(client::Client& client, const std::string& name, Jobs jobs) {
  for (JobSpec& job : jobs) job.freshness = Freshness::kMeasureAnew;
  const Jobs warm_up(jobs.begin(), jobs.begin() + std::min(jobs.size(), kWarmUpJobs));
  auto warmed = Evaluate(client, warm_up);
  if (!warmed) return Fail(warmed.error().kind, warmed.error().message);
  LF_TRY(const SlotOverhead before, ReadSlotOverhead(client));
  const auto fresh = Evaluate(client, jobs);
  if (!fresh) return Fail(fresh.error().kind, fresh.error().message);
  LF_TRY(const SlotOverhead after, ReadSlotOverhead(client));
  const double overhead_us =
      (after.seconds - before.seconds) / (after.kernels - before.kernels) * 1e6;
  LF_TRY(const double peer, PeerRate(jobs));
  Print({.bench = "evaluations",
         .name = name,
         .value = fresh->per_second,
         .unit = "evaluations/s",
         .peer = fmt::format("cc -O3 -march=native -shared, dlopen, 10 ms of timing, not verified; "
                             "the first {} schedules",
                             std::min(jobs.size(), kPeerSchedules)),
         .peer_value = peer,
         .details = {{"evaluated", fresh->gflops.size()},
                     {"failed", fresh->failed},
                     {"gflop_per_second", Distribution(fresh->gflops)},
                     {"grades", fresh->grades},
                     {"timing_share", fresh->slot_busy},
                     {"outside_batches_us", overhead_us}}});
  if (fresh->failed > 0) {
    return Fail(ErrorKind::kCorrupt,
                fmt::format("{}: {} jobs of the corpus failed", name, fresh->failed));
  }
  return {};
}

Status Run() {
  LF_TRY(const Jobs corpus, ReadCorpus(LOOPFLEET_SOURCE_DIR "/bench/corpus/matmul_walks.jsonl"));
  std::map<std::string, Jobs> cases;
  for (const JobSpec& job : corpus) {
    const std::string& uri = std::get<looptree::BenchmarkUri>(job.source).text;
    cases[uri.substr(uri.rfind('/') + 1)].push_back(job);
  }
  LF_TRY(auto cluster, client::LocalCluster::Start({.programs = client::OwnDirectory()}));
  auto client = client::Client::Connect({.address = cluster.address(), .program = "bench"});
  if (!client) return Fail(client.error().kind, client.error().message);
  for (const std::string name : {"mm64_64_64", "mm128_128_128", "mm256_256_256"}) {
    LF_TRY_VOID(RunCase(*client, name, cases[name]));
  }
  return {};
}

}  // namespace
}  // namespace loopfleet::bench

int main() {
  if (const auto status = loopfleet::bench::Run(); !status) {
    fmt::print(stderr, "bench evaluations: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
