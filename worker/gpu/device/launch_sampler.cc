#include "worker/gpu/device/launch_sampler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/base/result.h"
#include "worker/gpu/device/clock_ramp.h"

namespace loopfleet::worker {
namespace {

constexpr double kTurnNs = 500'000;  // that the runs of a turn take, if they are short
constexpr double kMostMarks = 128;   // events of a turn of several runs
// Launches shorter than this, on average, show the host's time: that is some microseconds for each.
constexpr double kShortLaunchNs = 200'000;
constexpr std::size_t kLeastTurns = 3;
constexpr std::chrono::milliseconds kLongest{200};  // no further turns after that

struct Turn {
  int runs = 1;
  GpuDevice::Submission submission = GpuDevice::Submission::kSeen;
};

// Short launches are submitted together where the driver can: one by one they would take as long as
// the host takes for them.
std::expected<Turn, Failure> ChooseTurn(GpuDevice& device, GpuDevice::Loaded& kernel) {
  LF_TRY_VOID(device.Time(kernel, 1));  // the first run is slow
  LF_TRY(const double run_ns, device.Time(kernel, 1));
  const auto launches = static_cast<double>(kernel.launch_count());
  const double wanted = std::ceil(kTurnNs / std::max(run_ns, 1.0));
  const int runs = static_cast<int>(std::clamp(wanted, 1.0, std::max(kMostMarks / launches, 1.0)));
  const bool is_short = run_ns < kShortLaunchNs * launches;
  if (is_short) LF_TRY_VOID(device.BatchRuns(kernel, runs));
  using enum GpuDevice::Submission;
  return Turn{.runs = runs, .submission = is_short || runs > 1 ? kHidden : kSeen};
}

void NoteQuickest(double ns, double& quickest) {
  if (quickest == 0 || ns < quickest) quickest = ns;
}

}  // namespace

std::expected<LaunchTimes, Failure> TakeLaunchTimes(GpuDevice& device, GpuDevice::Loaded& kernel) {
  LF_TRY(const Turn turn, ChooseTurn(device, kernel));
  const int runs = turn.runs;
  LF_TRY_VOID(WarmUpClocks(device, [&] { return device.Time(kernel, runs); }));
  LaunchTimes times{.runs = static_cast<std::uint64_t>(runs)};
  const std::chrono::nanoseconds start = device.Now();
  const auto may_go_on = [&] {
    if (times.turns.size() < kLeastTurns) return true;
    return times.turns.size() < kMostLaunchTurns && device.Now() - start < kLongest;
  };
  while (may_go_on()) {
    LF_TRY(const double plain_ns, device.Time(kernel, runs));
    NoteQuickest(plain_ns / runs, times.plain_ns);
    LF_TRY(std::vector<double> launches, device.TimeLaunches(kernel, runs, turn.submission));
    NoteQuickest(std::reduce(launches.begin(), launches.end()) / runs, times.marked_ns);
    times.turns.push_back(std::move(launches));
  }
  return times;
}

}  // namespace loopfleet::worker
