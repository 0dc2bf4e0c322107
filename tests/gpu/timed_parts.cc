#include "tests/gpu/timed_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/base/result.h"
#include "tests/gpu/cublas_peer.h"
#include "tests/gpu/schedule_search.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "worker/gpu/device/clock_ramp.h"
#include "worker/gpu/device/gpu_judge.h"
#include "worker/gpu/device/launch_sampler.h"
#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

using Json = Report::Json;

struct Schedule {
  const char* uri;
  const char* actions;
  int size;  // of the matrices; of an addition, the root of its element count
  bool judged_by_copy = false;
};
constexpr Schedule kTimed[] = {
    {"benchmark://loop_tool-cuda-v0/65536", "", 256},
    {"benchmark://loop_tool-cuda-v0/1048576", "", 1024},
    {"benchmark://loop_tool-cuda-v0/8388607", "", 2896, true},
    {"benchmark://loop_tool-cuda-v0/4096", "", 64},
    {"benchmark://mm-v0/mm64_64_64", "swap_down", 64},
    {"benchmark://mm-v0/mm1024_1024_1024", "", 1024},
    {"benchmark://mm-v0/mm1024_1024_1024", "swap_down", 1024},
    {"benchmark://mm-v0/mm1024_1024_1024", "split_64,down,swap_down", 1024},
    {"benchmark://mm-v0/mm2048_2048_2048", "swap_down", 2048},
    {"benchmark://mm-v0/mm4096_4096_4096", "swap_down", 4096},
};
constexpr std::uint64_t kCopiedBytes =
    8388607 * 4 * 3 / 2;  // as much traffic as the largest addition

// Bytes per nanosecond, read and written. 0: the copy could not be timed.
double CopyRate(const DeviceBench& bench, const Options& options) {
  constexpr int kTimes = 20;
  const std::uint64_t largest = std::uint64_t{6} * options.largest * options.largest;
  const std::uint64_t bytes = std::clamp(largest, std::uint64_t{1} << 20, kCopiedBytes);
  const auto copy = [&] { return bench.device.TimeCopies(bytes, kTimes); };
  if (!WarmUpClocks(bench.device, copy)) return 0;
  const auto ns = copy();
  return ns && *ns > 0 ? 2.0 * static_cast<double>(bytes) * kTimes / *ns : 0;
}

std::string CopyGoal(const Schedule& schedule) {
  return fmt::format("{} to a copy's bandwidth", schedule.uri);
}

}  // namespace

void RunTiming(const DeviceBench& bench, const Options& options) {
  Report& report = bench.report;
  report.Line(
      "The device's own clock, batches of at least 5 ms. Peer: a copy of {} MB within the "
      "device's memory, before and after each.\n",
      kCopiedBytes / 1'000'000);
  report.Line(
      "| benchmark | actions | cache | us | fastest to slowest | GFLOP/s | GB/s of tensors | to "
      "the copy | batches, throttled | device |\n|---|---|---|---|---|---|---|---|---|---|");
  std::vector<Report::Goal> goals;
  for (const Schedule& schedule : kTimed) {
    if (schedule.size > options.largest) {
      if (schedule.judged_by_copy) {
        goals.push_back({.name = CopyGoal(schedule), .goal = 0.95, .not_judged = "left out"});
      }
      continue;
    }
    const looptree::LoopTree tree = Walked(schedule.uri, schedule.actions);
    for (const CacheState cache : {CacheState::kWarm, CacheState::kCold}) {
      const char* const name = cache == CacheState::kWarm ? "warm" : "cold";
      const double copy_before = CopyRate(bench, options);
      const auto taken = MeasureTree(bench, tree, BenchPolicy(cache));
      if (!taken) {
        report.Fail(fmt::format("{} {} {}: {}", schedule.uri, schedule.actions, name,
                                taken.error().message));
        if (schedule.judged_by_copy && cache == CacheState::kWarm) {
          goals.push_back(
              {.name = CopyGoal(schedule), .goal = 0.95, .not_judged = taken.error().message});
        }
        continue;
      }
      const double copy = (copy_before + CopyRate(bench, options)) / 2;
      const std::vector<double>& ns = taken->samples.ns;
      const double median = MedianOf(ns);
      const double rate = static_cast<double>(looptree::TensorBytes(tree.program())) / median;
      const double flops = static_cast<double>(looptree::FlopCount(tree.program())) / median;
      const double to_copy = copy > 0 ? rate / copy : 0;
      report.Line("| {} | {} | {} | {:.2f} | {:.4f} | {:.1f} | {:.1f} | {:.3f} | {}{}, {} | {} |",
                  schedule.uri, schedule.actions, name, median / 1e3,
                  (std::ranges::max(ns) - std::ranges::min(ns)) / median, flops, rate, to_copy,
                  ns.size(), taken->is_batched ? " of graphs" : "", taken->throttled,
                  StateText(taken->after));
      report.Row({{"benchmark", schedule.uri},
                  {"actions", schedule.actions},
                  {"cache", name},
                  {"samples_ns", ns},
                  {"gflop_per_second", flops},
                  {"gb_per_second", rate},
                  {"copy_gb_per_second", copy},
                  {"throttled", taken->throttled},
                  {"clock_mhz", taken->after.clock_mhz},
                  {"temperature_c", taken->after.temperature_c},
                  {"power_w", taken->after.power_w}});
      if (schedule.judged_by_copy && cache == CacheState::kWarm) {
        goals.push_back({.name = CopyGoal(schedule),
                         .value = to_copy,
                         .goal = 0.95,
                         .not_judged = copy > 0 ? WhyNotJudged(*taken) : "no copy was timed"});
      }
    }
  }
  report.Line("");
  for (const Report::Goal& goal : goals) report.Judge(goal);
}

// ---- profiles by roots

namespace {

// The second root has four times the work of the first one.
struct Products {
  int size;       // rows of the first one, columns and depth of both
  double points;  // by which a share may be off
};
constexpr Products kProducts[] = {{64, 0.1}, {1024, 0.03}};
constexpr double kFirstShare = 0.2;
// From this size on a product should fill a device, so that its time is as its work, and take
// longer than events by far.
constexpr int kFills = 1024;

std::expected<Profile, Failure> ProfileTree(const DeviceBench& bench,
                                            const looptree::LoopTree& tree) {
  LF_TRY(const GpuKernel kernel, bench.compiler.Compile(tree));
  LF_TRY(const std::string code, CodeFor(bench, kernel));
  LF_TRY(const auto loaded, bench.device.Load(kernel, code));
  LF_TRY_VOID(bench.device.Run(*loaded, SmallIntegers(tree.program(), 1)));
  LF_TRY_VOID(bench.device.SetRandomInputs(*loaded));
  LF_TRY(const LaunchTimes times, TakeLaunchTimes(bench.device, *loaded));
  return ProfileOfLaunches(kernel.launch_roots, times);
}

// All below in nanoseconds, but shares.
struct ProfileTruth {
  Profile profile;
  double together = 0;  // both products in one kernel, timed as a figure is
  double first = 0;     // a product alone
  double second = 0;
  std::string not_judged;
};

std::expected<ProfileTruth, Failure> ProfileProducts(const DeviceBench& bench, int size) {
  const auto tree_of = [&](const std::vector<std::int64_t>& rows) {
    return ProductsTree(rows, size, size);
  };
  ProfileTruth truth;
  const auto time_rows =
      [&](const std::vector<std::int64_t>& rows) -> std::expected<double, Failure> {
    LF_TRY(const DeviceSamples taken,
           MeasureTree(bench, tree_of(rows), BenchPolicy(CacheState::kWarm)));
    if (const std::string why = WhyNotJudged(taken); !why.empty()) truth.not_judged = why;
    return MedianOf(taken.samples.ns);
  };
  LF_TRY(truth.profile, ProfileTree(bench, tree_of({size, 4 * size})));
  LF_TRY(truth.together, time_rows({size, 4 * size}));
  LF_TRY(truth.first, time_rows({size}));
  LF_TRY(truth.second, time_rows({4 * size}));
  return truth;
}

}  // namespace

void RunProfile(const DeviceBench& bench, const Options& options) {
  Report& report = bench.report;
  report.Line("Two products in one kernel, the second one of four times the work.\n");
  report.Line(
      "| size | us | events take | share of the first | of both timed alone | sum of shares |\n"
      "|---|---|---|---|---|---|");
  std::vector<Report::Goal> goals;
  for (const auto& [size, points] : kProducts) {
    if (size > options.largest) continue;
    const auto truth = ProfileProducts(bench, size);
    if (!truth) {
      report.Fail(fmt::format("{}: {}", size, truth.error().message));
      continue;
    }
    const Profile& profile = truth->profile;
    std::vector<double> shares;  // of the roots
    for (const ProfileLine& line : profile.lines) {
      if (line.place.part == ProfilePart::kNode) shares.push_back(line.share);
    }
    if (shares.size() != 2) {
      report.Fail(fmt::format("{}: there are {} roots instead of 2", size, shares.size()));
      continue;
    }
    const double alone = truth->first / (truth->first + truth->second);
    report.Line("| {} | {:.2f} | {:+.1f} % | {:.3f} | {:.3f} | {:.3f} |", size,
                profile.run_ns / 1e3, 100 * profile.overhead, shares[0], alone,
                shares[0] + shares[1]);
    report.Row({{"size", size},
                {"run_ns", profile.run_ns},
                {"overhead", profile.overhead},
                {"shares", shares},
                {"together_ns", truth->together},
                {"first_ns", truth->first},
                {"second_ns", truth->second}});
    const auto judge = [&](std::string_view what, double off, double most) {
      goals.push_back({.name = fmt::format("products of {}: {}", size, what),
                       .value = std::abs(off),
                       .bound = Report::Goal::Bound::kAtMost,
                       .goal = most,
                       .not_judged = truth->not_judged});
    };
    judge("sum of the shares, off 1", shares[0] + shares[1] - 1, 0.03);
    judge("share of the first, off that of both timed alone", shares[0] - alone, points);
    judge("the plain run beside it, off the kernel's figure", profile.run_ns / truth->together - 1,
          0.05);
    if (size < kFills) continue;
    judge("share of the first, off its work", shares[0] - kFirstShare, 0.05);
    judge("time that events take", profile.overhead, 0.05);
  }
  report.Line("");
  for (const Report::Goal& goal : goals) report.Judge(goal);
}

// ---- the best schedule found, compared with cuBLAS

namespace {

// Checks some elements of the product one by one. A full reference would take the host minutes.
std::string CheckSome(const std::vector<looptree::Tensor>& inputs, const looptree::Tensor& product,
                      int size) {
  SplitMix64 random(5);
  const auto n = static_cast<std::size_t>(size);
  for (int i = 0; i < 512; ++i) {
    const std::size_t row = random.Below(n);
    const std::size_t column = random.Below(n);
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) {
      sum += double{inputs[0][row * n + k]} * double{inputs[1][k * n + column]};
    }
    if (double{product[row * n + column]} != sum) {
      return fmt::format("element {}, {}: {} instead of {}", row, column, product[row * n + column],
                         sum);
    }
  }
  return "";
}

}  // namespace

void RunSearch(const DeviceBench& bench, const Options& options) {
  Report& report = bench.report;
  const auto cublas = CublasPeer::Open(bench.driver);
  report.Line("{} s for each size, beside {}.\n", options.search_seconds,
              cublas ? (*cublas)->version() + ", float32, TF32 off"
                     : "no peer (" + cublas.error().message + ")");
  if (!cublas) report.Skip("cuBLAS as peer: " + cublas.error().message);
  report.Line(
      "| size | tried, failed | actions | us | GFLOP/s | cuBLAS GFLOP/s | ratio |\n"
      "|---|---|---|---|---|---|---|");
  std::vector<Report::Goal> goals;
  for (const int size : {64, 1024, 2048, 4096}) {
    if (size == 64 && options.largest > 64) continue;  // for the fake device only
    Report::Goal goal{.name = fmt::format("product of {}, to cuBLAS", size), .goal = 0.7};
    const auto add_goal = [&](const std::string& not_judged) {
      goal.not_judged = not_judged;
      goals.push_back(goal);
    };
    if (size > options.largest) {
      add_goal("left out");
      continue;
    }
    const std::string uri = fmt::format("benchmark://mm-v0/mm{}_{}_{}", size, size, size);
    const auto inputs = SmallIntegers(Walked(uri, "").program(), 1);
    const auto time_tree = [&](const looptree::LoopTree& tree) -> std::expected<double, Failure> {
      LF_TRY(const GpuKernel kernel, bench.compiler.Compile(tree));
      LF_TRY(const std::string code, CodeFor(bench, kernel));
      LF_TRY(const auto loaded, bench.device.Load(kernel, code));
      LF_TRY(const auto outputs, bench.device.Run(*loaded, inputs));
      if (const std::string wrong = CheckSome(inputs, outputs[0], size); !wrong.empty()) {
        return std::unexpected(Failure{.code = FailureCode::kWrongOutput, .message = wrong});
      }
      LF_TRY_VOID(bench.device.SetRandomInputs(*loaded));
      SamplingPolicy policy = BenchPolicy(CacheState::kWarm);
      policy.min_repetition_ns = 1'000'000;
      policy.budget_ns = 20'000'000;
      LF_TRY(const DeviceSamples taken,
             TakeDeviceSamples(bench.device, *loaded, policy, bench.sensors));
      return MedianOf(taken.samples.ns);
    };
    const auto found =
        SearchSchedule(size, options.seed, std::chrono::seconds(options.search_seconds), time_tree);
    if (!found) {
      report.Fail(fmt::format("{}: {}", size, found.error().message));
      add_goal(found.error().message);
      continue;
    }
    // Times the best schedule again, alternating with the peer.
    const looptree::LoopTree tree = Walked(uri, found->actions);
    const auto flop = static_cast<double>(looptree::FlopCount(tree.program()));
    std::vector<double> ours;
    std::vector<double> theirs;
    std::string why_not = cublas ? "" : cublas.error().message;
    const auto timed = [&]() -> std::expected<void, Failure> {
      LF_TRY(const GpuKernel kernel, bench.compiler.Compile(tree));
      LF_TRY(const std::string code, CodeFor(bench, kernel));
      LF_TRY(const auto loaded, bench.device.Load(kernel, code));
      LF_TRY(const auto outputs, bench.device.Run(*loaded, inputs));
      if (const std::string wrong = CheckSome(inputs, outputs[0], size); !wrong.empty()) {
        return std::unexpected(Failure{.code = FailureCode::kWrongOutput, .message = wrong});
      }
      LF_TRY_VOID(bench.device.SetRandomInputs(*loaded));
      const std::vector<CudaAddress>& at = loaded->buffers();
      for (int round = 0; round < 6; ++round) {
        const SamplingPolicy policy = BenchPolicy(CacheState::kWarm);
        LF_TRY(const DeviceSamples taken,
               TakeDeviceSamples(bench.device, *loaded, policy, bench.sensors));
        if (round > 0) ours.push_back(MedianOf(taken.samples.ns));
        if (const std::string why = WhyNotJudged(taken); !why.empty()) why_not = why;
        if (!cublas) continue;
        const int runs = std::max(1, static_cast<int>(2e7 / MedianOf(taken.samples.ns)));
        const auto ns = bench.device.TimeQueued(
            [&] { return (*cublas)->Start(size, at[0], at[1], at[2]); }, runs);
        if (!ns && bench.device.lost()) return std::unexpected(ns.error());
        if (!ns) why_not = "cuBLAS: " + ns.error().message;
        if (ns && round > 0) theirs.push_back(*ns / runs);
      }
      return {};
    }();
    if (!timed) {
      report.Fail(fmt::format("{}: {}", size, timed.error().message));
      add_goal(timed.error().message);
      continue;
    }
    const double rate = flop / MedianOf(ours);
    const double peer = theirs.empty() ? 0 : flop / MedianOf(theirs);
    report.Line("| {} | {}, {} | {} | {:.2f} | {:.1f} | {} | {} |", size, found->tried,
                found->failed, found->actions, MedianOf(ours) / 1e3, rate,
                peer > 0 ? fmt::format("{:.1f}", peer) : "-",
                peer > 0 ? fmt::format("{:.3f}", rate / peer) : "-");
    report.Row({{"size", size},
                {"tried", found->tried},
                {"failed", found->failed},
                {"actions", found->actions},
                {"ns", ours},
                {"cublas_ns", theirs},
                {"gflop_per_second", rate},
                {"cublas_gflop_per_second", peer > 0 ? Json(peer) : Json(nullptr)}});
    if (peer > 0) goal.value = rate / peer;
    add_goal(peer > 0 || !why_not.empty() ? why_not : "cuBLAS was not timed");
  }
  report.Line("");
  for (const Report::Goal& goal : goals) report.Judge(goal);
}

// ---- repeated measurements

void RunRepeats(const DeviceBench& bench, const Options& options) {
  Report& report = bench.report;
  report.Line("One schedule {} times, each loaded anew.\n", options.repeats);
  for (const Schedule& schedule :
       {Schedule{"benchmark://loop_tool-cuda-v0/1048576", "", 1024},
        Schedule{"benchmark://mm-v0/mm1024_1024_1024", "swap_down", 1024},
        Schedule{"benchmark://mm-v0/mm64_64_64", "swap_down", 64}}) {
    if (schedule.size > options.largest) continue;
    const looptree::LoopTree tree = Walked(schedule.uri, schedule.actions);
    std::vector<double> medians;
    std::string why_not;
    for (int i = 0; i < options.repeats; ++i) {
      const auto taken = MeasureTree(bench, tree, BenchPolicy(CacheState::kWarm));
      if (!taken) {
        report.Fail(fmt::format("{}: {}", schedule.uri, taken.error().message));
        why_not = taken.error().message;
        break;
      }
      if (const std::string why = WhyNotJudged(*taken); !why.empty()) why_not = why;
      medians.push_back(MedianOf(taken->samples.ns));
    }
    if (medians.empty()) continue;
    const double median = MedianOf(medians);
    std::vector<double> apart;
    for (const double ns : medians) apart.push_back(std::abs(ns / median - 1));
    std::ranges::sort(apart);
    report.Line(
        "- {} {}: {:.2f} us; from their median by {:.4f} in the median, {:.4f} at the 90th "
        "percentile, {:.4f} at most",
        schedule.uri, schedule.actions, median / 1e3, MedianOf(apart), apart[apart.size() * 9 / 10],
        apart.back());
    report.Row({{"benchmark", schedule.uri}, {"actions", schedule.actions}, {"ns", medians}});
    report.Judge(
        {.name = fmt::format("{} {}: furthest from the median", schedule.uri, schedule.actions),
         .value = apart.back(),
         .bound = Report::Goal::Bound::kAtMost,
         .goal = 0.01,
         .not_judged = why_not});
  }
}

}  // namespace loopfleet::worker
