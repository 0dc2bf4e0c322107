#include "worker/gpu/device/device_sampler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "worker/gpu/device/clock_ramp.h"
#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

constexpr double kNsPerMs = 1e6;
// A launch takes the host some microseconds. Kernels whose launches are shorter than this run as
// graphs.
constexpr double kLaunchBoundNs = 20'000;
constexpr int kMostInGraph = 256;  // launches; one run may have more
constexpr int kMostCopies = 16;
// Runs longer than this can be timed one by one, in spite of kEventTickNs.
constexpr double kLongNs = 500'000;

class DeviceSampling {
 public:
  DeviceSampling(GpuDevice& device, GpuDevice::Loaded& kernel, const SamplingPolicy& policy,
                 DeviceSensors* sensors)
      : device_(device), kernel_(kernel), policy_(policy), sensors_(sensors) {}

  std::expected<DeviceSamples, Failure> Take() {
    if (sensors_ != nullptr) result_.before = Read();
    NoteProcesses();
    LF_TRY_VOID(ChooseCopies());
    LF_TRY_VOID(ChooseIterations());
    LF_TRY_VOID(Ramp());
    const std::chrono::nanoseconds start = device_.Now();
    do {
      LF_TRY_VOID(TakeSample());
    } while (MayGoOn(device_.Now() - start));
    NoteProcesses();
    Samples& samples = result_.samples;
    samples.iterations = static_cast<std::uint64_t>(runs_);
    samples.clock_before_mhz = ramped_.clock_mhz;
    samples.clock_after_mhz = result_.after.clock_mhz;
    samples.slowdown = 1;
    return std::move(result_);
  }

 private:
  void NoteProcesses() {
    // This process itself has a context.
    if (sensors_ != nullptr && sensors_->Processes().value_or(1) > 1) result_.was_shared = true;
  }

  SensorReading Read() {
    const SensorReading reading = sensors_->Read();
    if (!result_.state) result_.state.emplace();
    Note(reading, *result_.state);
    return reading;
  }

  bool is_cold() const { return policy_.cache == CacheState::kCold; }

  // For cold measurements. Long runs are timed one by one. Shorter runs are timed in batches over
  // so many copies of the buffers that twice the cache size lies between two runs on the same copy.
  // If that takes too many copies, single runs are timed.
  std::expected<void, Failure> ChooseCopies() {
    if (!is_cold()) return {};
    evicts_ = true;
    LF_TRY(const double run_ns, TimeBatch());
    if (run_ns >= kLongNs) return {};
    const auto cache = static_cast<std::uint64_t>(device_.facts().l2_bytes);
    const std::uint64_t bytes = std::max<std::uint64_t>(kernel_.bytes(), 1);
    const std::uint64_t wanted = 1 + (2 * cache + bytes - 1) / bytes;
    if (wanted <= kMostCopies) {
      LF_TRY(result_.copies, device_.AddCopies(kernel_, static_cast<int>(wanted)));
    }
    evicts_ = result_.copies < static_cast<int>(wanted);
    return {};
  }

  std::expected<double, Failure> TimeBatch(const GpuDevice::Meanwhile& meanwhile = {}) {
    return evicts_ ? device_.TimeCold(kernel_, meanwhile) : device_.Time(kernel_, runs_, meanwhile);
  }
  // Reads the sensors while the device is busy: an idle device reports no throttling.
  std::expected<double, Failure> TimeBatch(SensorReading& reading) {
    if (sensors_ == nullptr) return TimeBatch();
    return TimeBatch([&] { reading = Read(); });
  }

  // A multiple of the copies.
  int RunsInGraph() const {
    const int launches = std::max(static_cast<int>(kernel_.launch_count()), 1);
    return std::max(kMostInGraph / launches / result_.copies, 1) * result_.copies;
  }

  std::expected<void, Failure> ChooseIterations() {
    runs_ = result_.copies;
    if (evicts_) {
      runs_ = 1;
      return {};
    }
    const auto wanted = static_cast<double>(policy_.min_repetition_ns);
    for (;;) {
      LF_TRY(const double ns, TimeBatch());
      const double run_ns = ns / runs_;
      const bool is_enough = ns >= wanted || runs_ >= 1 << 20;
      // If launches take longer than the kernel, runs launched one by one measure the launches.
      const bool is_bound = run_ns < kLaunchBoundNs * static_cast<double>(kernel_.launch_count());
      if (!result_.is_batched && is_bound && (is_enough || runs_ >= 8 * result_.copies)) {
        LF_TRY(result_.is_batched, device_.BatchRuns(kernel_, RunsInGraph()));
        if (result_.is_batched) {
          runs_ = RunsInGraph();
          continue;
        }
      }
      if (is_enough) return {};
      // At most eightfold per step, because the first runs are slow and not representative.
      const int unit = result_.is_batched ? RunsInGraph() : result_.copies;
      const double steps = std::clamp(std::ceil(1.1 * wanted / std::max(ns, 1.0)), 2.0, 8.0);
      runs_ = std::max(runs_ * static_cast<int>(steps) / unit, 1) * unit;
    }
  }

  std::expected<void, Failure> Ramp() {
    LF_TRY_VOID(WarmUpClocks(device_, [&] { return TimeBatch(); }));
    LF_TRY_VOID(TimeBatch(ramped_));
    throttle_ = ramped_.throttle_reasons;
    return {};
  }

  std::expected<void, Failure> TakeSample() {
    LF_TRY(const double ns, TimeBatch(result_.after));
    const std::uint64_t before = throttle_;
    throttle_ = result_.after.throttle_reasons;
    const bool is_throttled = ((before | throttle_) & kThrottledReasons) != 0;
    Samples& samples = result_.samples;
    // A batch that ends in the same tick reads as 0, which is not a valid time.
    samples.ns.push_back(std::max(ns, kEventTickNs) / runs_);
    samples.flags.push_back(is_throttled ? kSampleThrottled : kSampleAccepted);
    if (is_throttled) {
      ++result_.throttled;
    } else {
      accepted_.push_back(samples.ns.back());
    }
    return {};
  }

  bool MayGoOn(std::chrono::nanoseconds spent) {
    const auto spent_ns = static_cast<std::uint64_t>(spent.count());
    if (result_.samples.ns.size() >= policy_.max_samples) return false;
    constexpr std::size_t kLeastToCut = 2;
    if (policy_.cut_above_ns > 0 && accepted_.size() >= kLeastToCut &&
        *std::ranges::min_element(accepted_) > static_cast<double>(policy_.cut_above_ns)) {
      result_.samples.end = SamplingEnd::kCut;
      return false;
    }
    if (accepted_.size() < policy_.min_samples) return spent_ns < policy_.patience_ns;
    if (accepted_.size() >= policy_.most_samples || spent_ns >= policy_.budget_ns) return false;
    return MedianWithInterval(accepted_).spread() > policy_.precision;
  }

  GpuDevice& device_;
  GpuDevice::Loaded& kernel_;
  const SamplingPolicy& policy_;
  DeviceSensors* const sensors_;
  DeviceSamples result_;
  SensorReading ramped_;
  std::uint64_t throttle_ = 0;  // throttle reasons of the last reading
  std::vector<double> accepted_;
  int runs_ = 1;         // per batch
  bool evicts_ = false;  // evict the cache before each run, and time runs one by one
};

}  // namespace

std::expected<DeviceSamples, Failure> TakeDeviceSamples(GpuDevice& device,
                                                        GpuDevice::Loaded& kernel,
                                                        const SamplingPolicy& policy,
                                                        DeviceSensors* sensors) {
  return DeviceSampling(device, kernel, policy, sensors).Take();
}

}  // namespace loopfleet::worker
