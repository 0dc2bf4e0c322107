#pragma once
// ScriptedCore: a scripted core. Its clock moves only when a kernel or a probe runs on it;
// neighbours come and go, and slow kernels and probes alike. Belongs to one thread.

#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "worker/timing/sampler.h"

namespace loopfleet::worker {

class ScriptedCore {
 public:
  // The factor by which everything is slower at a moment; 1: quiet.
  std::function<double(std::uint64_t now_ns)> slowdown = [](std::uint64_t) { return 1.0; };
  std::function<double(std::uint64_t now_ns)> clock_mhz = [](std::uint64_t) { return 3000.0; };
  // Extra time of the n-th call of the kernel, 0-based: a disturbance that no probe sees.
  std::function<std::uint64_t(std::size_t)> extra_ns = [](std::size_t) { return 0; };
  // Whether the system interrupts the n-th call of the kernel for something else.
  std::function<bool(std::size_t)> preempts = [](std::size_t) { return false; };
  double clock_of_wide = 1;  // while the kernel's wide vectors run, by clock_mhz
  std::uint64_t run_ns = 5'000;
  std::uint64_t probe_ns = 3'000;  // when quiet, at 3000 MHz: 9,000 cycles
  std::uint64_t now = 1'000'000;
  std::vector<std::uint64_t> repetitions;  // runs in each
  std::size_t evictions = 0;
  std::uint64_t eviction_ns = 0;
  std::size_t warmings = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t slice_ns = 4'000'000;  // the system's time on the core per interruption
  std::uint64_t away_ns = 0;           // in all interruptions

  std::uint64_t runs() const {
    return std::accumulate(repetitions.begin(), repetitions.end(), 0UL);
  }

  Samples Take(const SamplingPolicy& policy) {
    Watch watch(*this);
    Probe probe(*this);
    Kernel kernel(*this);
    return SampleRound(policy, {.stopwatch = watch, .probe = probe}, kernel);
  }

 private:
  struct Watch final : Stopwatch {
    explicit Watch(ScriptedCore& its) : core(its) {}
    std::uint64_t NowNs() const override { return core.now; }
    ScriptedCore& core;
  };
  struct Probe final : CoreProbe {
    explicit Probe(ScriptedCore& its) : core(its) {}
    std::uint64_t ThroughputNs() override { return core.Spend(core.probe_ns); }
    bool WaitUntilQuiet(double quiet_ns, std::uint64_t patience_ns) override {
      const std::uint64_t start = core.now;
      do {
        if (static_cast<double>(ThroughputNs()) <= quiet_ns) return true;
      } while (core.now - start < patience_ns);
      return false;
    }
    double ClockMhz(std::uint32_t vector_bytes) override {
      return core.clock_mhz(core.now) * (vector_bytes > 0 ? core.clock_of_wide : 1);
    }
    void HoldClock(std::uint32_t) override {}
    std::uint64_t Preemptions() override { return core.preemptions; }
    std::uint64_t ProcessorNs() override { return core.now - core.away_ns; }
    ScriptedCore& core;
  };
  struct Kernel final : IterationRunner {
    explicit Kernel(ScriptedCore& its) : core(its) {}
    void Run(std::uint64_t iterations) override {
      core.Spend(static_cast<std::uint64_t>(static_cast<double>(core.run_ns * iterations) /
                                            core.clock_of_wide));
      core.now += core.extra_ns(core.repetitions.size());
      if (core.preempts(core.repetitions.size())) {
        ++core.preemptions;
        core.now += core.slice_ns;
        core.away_ns += core.slice_ns;
      }
      core.repetitions.push_back(iterations);
    }
    void WarmCaches() override { ++core.warmings; }
    void EvictCaches() override {
      ++core.evictions;
      core.now += core.eviction_ns;
    }
    ScriptedCore& core;
  };

  // Advances in steps, so that changes of slowdown and clock meanwhile count.
  std::uint64_t Spend(std::uint64_t quiet_ns) {
    const std::uint64_t start = now;
    constexpr std::uint64_t kStep = 1'000;
    for (std::uint64_t left = quiet_ns; left > 0;) {
      const std::uint64_t step = std::min(left, kStep);
      const double clock = clock_mhz(now);
      const double slower = slowdown(now) * (clock > 0 ? 3000.0 / clock : 1.0);
      now += static_cast<std::uint64_t>(static_cast<double>(step) * slower);
      left -= step;
    }
    return now - start;
  }
};

}  // namespace loopfleet::worker
