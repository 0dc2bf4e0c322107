#include "worker/timing/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

// Once the patience is over: the most repetitions in all. Long runs count as rounds, and there are
// five of those at most.
constexpr std::uint32_t kMostTries = 5;
// Extra length of a repetition, so that a small speed-up does not push it below the least time.
constexpr double kMargin = 1.05;
// A repetition this close to the least time is long enough. Otherwise a kernel of slightly less
// would run twice per repetition for nothing.
constexpr double kNearlyEnough = 0.8;
// The largest factor by which one step raises the number of runs in a repetition; also the divisor
// for the part of a repetition that warms up.
constexpr std::uint64_t kLargestStep = 20;
// A core that was idle speeds up while it works. It is given so long, if its clock is this far
// below the reference or falls for the kernel's wide vectors, and looked at so often.
constexpr std::uint64_t kMostSpeedUpNs = 2'000'000;
constexpr std::uint64_t kSpeedUpStepNs = 60'000;
constexpr double kSlowClock = 0.97;
constexpr double kSteadyClock = 0.005;  // relative change between two looks

// Vectors for which processors lower their clock.
constexpr std::uint32_t kWideBytes = 32;

// The share of a long repetition that other work on the core may take: half of what grade A allows.
constexpr double kMaxAwayShare = 0.005;

class Sampling {
 public:
  Sampling(const SamplingPolicy& policy, const Instruments& with, IterationRunner& runner)
      : policy_(policy),
        with_(with),
        runner_(runner),
        wide_bytes_(policy.cache == CacheState::kWarm && policy.vector_bytes >= kWideBytes
                        ? policy.vector_bytes
                        : 0) {}

  Samples Take() {
    if (policy_.cache == CacheState::kCold) {
      FindReadingCost();
      clock_mhz_ = scalar_mhz_ = with_.probe.ClockMhz(0);
    } else {
      clock_mhz_ = scalar_mhz_ = with_.probe.ClockMhz(0);
      Probe();
      if (WaitUntilQuiet()) clock_mhz_ = scalar_mhz_ = with_.probe.ClockMhz(0);
      runner_.WarmCaches();
    }
    started_at_ = with_.stopwatch.NowNs();
    TakeFirstRepetition();
    for (;;) {
      ProbeAfter();
      Judge();
      if (!MayGoOn()) break;
      AwaitQuiet();
      TakeRepetition();
    }
    samples_.spent_ns = with_.stopwatch.NowNs() - started_at_;
    samples_.clock_after_mhz = ClockOfKernel();
    samples_.probe_cycles = QuickestProbe();
    return std::move(samples_);
  }

 private:
  std::uint64_t TimeRuns(std::uint64_t iterations) {
    const std::uint64_t start = with_.stopwatch.NowNs();
    runner_.Run(iterations);
    // A clock that did not move would make the kernel infinitely fast.
    return std::max<std::uint64_t>(with_.stopwatch.NowNs() - start, 1);
  }

  // What two clock readings add to the time of a single run.
  void FindReadingCost() {
    reading_ns_ = std::numeric_limits<std::uint64_t>::max();
    for (int i = 0; i < 16; ++i) {
      const std::uint64_t start = with_.stopwatch.NowNs();
      reading_ns_ = std::min(reading_ns_, with_.stopwatch.NowNs() - start);
    }
  }

  void TakeFirstRepetition() {
    const bool is_cold = policy_.cache == CacheState::kCold;
    samples_.iterations = is_cold ? 1 : FirstIterations();
    WarmUp();
    if (!is_cold) AwaitSteadyClock();
    Probe();
    AwaitQuiet();
    TakeRepetition();
    if (wide_bytes_ > 0 && IsTooLongToWarm()) {
      samples_.clock_before_mhz = clock_mhz_ = ClockOfKernel();
    }
    if (!is_cold && policy_.iterations == 0) FindIterations();
  }

  std::uint64_t FirstIterations() {
    if (policy_.iterations > 0) return policy_.iterations;
    const auto wanted_ns = static_cast<double>(policy_.min_repetition_ns);
    if (!(policy_.estimated_run_ns > 0) || policy_.estimated_run_ns >= kNearlyEnough * wanted_ns)
      return 1;
    // The estimate may be wrong by any factor. A first run, not yet warm, bounds it.
    const double least_ns = static_cast<double>(TimeRuns(1)) / kLargestStep;
    const double wanted =
        std::ceil(kMargin * wanted_ns / std::max(policy_.estimated_run_ns, least_ns));
    return std::min(static_cast<std::uint64_t>(wanted),
                    std::max<std::uint64_t>(policy_.max_iterations, 1));
  }

  // Finds how many runs fill a repetition, with a small margin. Grows at most twentyfold a step,
  // because the first runs are cold and say too little. The repetition that is long enough counts
  // as the first sample.
  void FindIterations() {
    const auto least = static_cast<double>(policy_.min_repetition_ns);
    for (int tries_left = 3;;) {
      const double elapsed = samples_.ns.back() * static_cast<double>(samples_.iterations);
      bool is_found = false;
      if (!is_lengthened_ || tries_left-- <= 0) {
        if (elapsed >= kNearlyEnough * least) return;
        if (samples_.iterations >= policy_.max_iterations) return;
        const double wanted =
            std::ceil(kMargin * least * static_cast<double>(samples_.iterations) / elapsed);
        const auto most = std::min(samples_.iterations * kLargestStep, policy_.max_iterations);
        const bool is_known = wanted < static_cast<double>(most);
        samples_.iterations = is_known ? static_cast<std::uint64_t>(wanted) : most;
        is_found = is_known && elapsed >= least / kLargestStep;
      }
      ProbeAfter();
      samples_.ns.clear();
      samples_.flags.clear();
      beside_.clear();
      AwaitQuiet();
      TakeRepetition();
      if (is_found) return;
    }
  }

  void Probe() {
    // After an eviction the first probe only brings its own code back into the caches.
    if (policy_.cache == CacheState::kCold) with_.probe.ThroughputNs();
    probe_ = static_cast<double>(with_.probe.ThroughputNs()) * CyclesPerNs();
    HoldClock();
  }

  // Right after the kernel.
  double ClockOfKernel() { return with_.probe.ClockMhz(wide_bytes_); }

  void HoldClock() {
    if (wide_bytes_ > 0) with_.probe.HoldClock(wide_bytes_);
  }

  // Probes after a repetition.
  void ProbeAfter() {
    Probe();
    beside_.back().after = probe_;
  }

  // 1 if the clock is unknown, so that cycles are nanoseconds.
  double CyclesPerNs() const { return clock_mhz_ > 0 ? clock_mhz_ / kMhzPerPerNs : 1; }

  // Waits for a quiet core, if the last probe found it contended and there is patience left. True:
  // it waited, and the core has become quiet.
  bool WaitUntilQuiet() {
    const double quiet = kContendedFrom * policy_.quiet_cycles;  // 0: not known
    if (quiet <= 0 || probe_ <= quiet || waited_ns_ >= policy_.quiet_wait_ns) return false;
    const std::uint64_t start = with_.stopwatch.NowNs();
    // Probes alone: the clock of wide vectors does not hold.
    const double per_ns = scalar_mhz_ > 0 ? scalar_mhz_ / kMhzPerPerNs : 1;
    const bool is_quiet =
        with_.probe.WaitUntilQuiet(quiet / per_ns, policy_.quiet_wait_ns - waited_ns_);
    waited_ns_ += with_.stopwatch.NowNs() - start;
    return is_quiet;
  }

  // Called right before a repetition, so that it does not begin beside a neighbour that is about to
  // go.
  void AwaitQuiet() {
    if (policy_.cache == CacheState::kCold) return;  // an eviction outlasts quiet moments
    while (WaitUntilQuiet()) {
      // The neighbour has used the caches.
      const std::uint64_t start = with_.stopwatch.NowNs();
      runner_.WarmCaches();
      WarmUp();
      AwaitSteadyClock();
      Probe();
      waited_ns_ += with_.stopwatch.NowNs() - start;
    }
  }

  // Untimed runs: the kernel's code and branch history are no longer in the core.
  void WarmUp() {
    if (samples_.iterations > 1) runner_.Run((samples_.iterations - 1) / kLargestStep + 1);
    preemptions_ = with_.probe.Preemptions();
  }

  // A run outlasts any rise of the clock.
  bool IsTooLongToWarm() const {
    return policy_.estimated_run_ns * static_cast<double>(samples_.iterations) >=
           static_cast<double>(kMostSpeedUpNs);
  }

  // If the clock is below the reference, or lower for the kernel's vectors than it was, runs the
  // kernel until it no longer rises.
  void AwaitSteadyClock() {
    if (IsTooLongToWarm()) return;
    bool has_fallen = false;
    if (wide_bytes_ > 0) {
      if (samples_.iterations == 1) runner_.Run(1);  // WarmUp has run it otherwise
      clock_mhz_ = ClockOfKernel();
      has_fallen = clock_mhz_ < scalar_mhz_ * (1 - kSteadyClock);
      preemptions_ = with_.probe.Preemptions();
    }
    if (clock_mhz_ <= 0) return;
    if (scalar_mhz_ >= kSlowClock * policy_.reference_mhz && !has_fallen) return;
    const std::uint64_t begun = with_.stopwatch.NowNs();
    bool is_rising = true;
    while (is_rising && with_.stopwatch.NowNs() - begun < kMostSpeedUpNs) {
      const std::uint64_t step = with_.stopwatch.NowNs();
      do {
        runner_.Run(samples_.iterations);
      } while (with_.stopwatch.NowNs() - step < kSpeedUpStepNs);
      const double before = std::exchange(clock_mhz_, ClockOfKernel());
      is_rising = clock_mhz_ > before * (1 + kSteadyClock);
    }
    preemptions_ = with_.probe.Preemptions();
  }

  void TakeRepetition() {
    if (policy_.cache == CacheState::kCold) {
      runner_.EvictCaches();
      preemptions_ = with_.probe.Preemptions();
    }
    // A second of work is interrupted on every system, for a few milliseconds, so a long repetition
    // may lose a little of its core. Any interruption spoils a shorter one, so its processor time
    // is not read.
    const bool is_long = IsLong();
    const std::uint64_t had = is_long ? with_.probe.ProcessorNs() : 0;
    if (samples_.ns.empty()) samples_.clock_before_mhz = clock_mhz_;
    HoldClock();
    std::uint64_t elapsed = TimeRuns(samples_.iterations);
    if (policy_.cache == CacheState::kCold) {
      elapsed = elapsed > reading_ns_ ? elapsed - reading_ns_ : 1;
    }
    samples_.ns.push_back(static_cast<double>(elapsed) / static_cast<double>(samples_.iterations));
    // Read once per repetition: a preemption between two repetitions hit a probe, which then cannot
    // be trusted either.
    const std::uint64_t preemptions = with_.probe.Preemptions();
    bool is_preempted = preemptions != std::exchange(preemptions_, preemptions);
    bool has_own_time = false;
    if (is_preempted && is_long) {
      const std::uint64_t has = with_.probe.ProcessorNs() - had;
      is_preempted =
          has == 0 || static_cast<double>(elapsed) * (1 - kMaxAwayShare) > static_cast<double>(has);
      // Its processor time is far closer to an undisturbed run than the time with that of others.
      const bool is_alone = policy_.threads == 1 && policy_.cache == CacheState::kWarm;
      has_own_time = is_preempted && is_alone && has > 0 && has < elapsed;
      if (has_own_time) {
        samples_.ns.back() = static_cast<double>(has) / static_cast<double>(samples_.iterations);
      }
    }
    is_lengthened_ = is_preempted && !has_own_time;
    samples_.flags.push_back(is_preempted ? kSamplePreempted : kSampleAccepted);
    beside_.push_back({.before = probe_, .after = probe_});
  }

  // Whether the next repetition may be long. A repetition whose iterations an earlier round found
  // is not; a single run may take any time.
  bool IsLong() const {
    constexpr double kLongNs = 500'000;
    if (samples_.ns.empty()) return policy_.iterations <= 1;
    return samples_.ns.back() * static_cast<double>(samples_.iterations) > kLongNs;
  }

  double QuickestProbe() const {
    double quickest = std::numeric_limits<double>::infinity();
    for (const Beside& probes : beside_) {
      quickest = std::min({quickest, probes.before, probes.after});
    }
    return quickest;
  }

  // Judges every repetition again: without a known baseline, a quicker probe makes earlier ones
  // contended.
  void Judge() {
    const double quiet = policy_.quiet_cycles > 0 ? policy_.quiet_cycles : QuickestProbe();
    accepted_.clear();
    unpreempted_ = 0;
    contended_ = 0;
    timed_ns_ = 0;
    std::vector<double> slowdowns;
    for (std::size_t i = 0; i < samples_.ns.size(); ++i) {
      const double slower = std::max(beside_[i].before, beside_[i].after) / quiet;
      const bool is_preempted = (samples_.flags[i] & kSamplePreempted) != 0;
      const bool is_contended = slower > kContendedFrom;
      samples_.flags[i] = static_cast<std::uint8_t>((is_preempted ? kSamplePreempted : 0) |
                                                    (is_contended ? kSampleContended : 0));
      if (is_contended) slowdowns.push_back(slower);
      if (is_contended) ++contended_;
      if (!is_preempted) ++unpreempted_;
      if (samples_.flags[i] == kSampleAccepted) {
        accepted_.push_back(samples_.ns[i]);
        timed_ns_ += samples_.ns[i] * static_cast<double>(samples_.iterations);
      }
    }
    samples_.slowdown = slowdowns.empty() ? 1 : MedianOf(std::move(slowdowns));
  }

  bool MayGoOn() {
    if (samples_.ns.size() >= policy_.max_samples) return false;
    if (IsSurelyAboveCut()) {
      samples_.end = SamplingEnd::kCut;
      return false;
    }
    const std::uint64_t spent = with_.stopwatch.NowNs() - started_at_;
    if (accepted_.size() < policy_.min_samples) {
      const bool is_patient = spent < policy_.patience_ns;
      const std::size_t lost = is_patient ? contended_ : samples_.ns.size();
      // Of preempted repetitions alone no figure can be made.
      const bool has_any = unpreempted_ > 0;
      if (accepted_.empty() && has_any && lost >= policy_.give_up_after) return false;
      if (is_patient) return true;
      // A busy system may have used up the whole patience in the middle of one run.
      return unpreempted_ < policy_.min_samples && samples_.ns.size() < kMostTries;
    }
    if (accepted_.size() >= policy_.most_samples || spent >= policy_.budget_ns) return false;
    if (timed_ns_ < static_cast<double>(policy_.least_timed_ns)) return true;
    if (policy_.precision <= 0) return false;
    // Sorting all samples after each one would cost more than it saves.
    if (accepted_.size() < next_check_) return true;
    next_check_ = accepted_.size() + 1 + accepted_.size() / 16;
    return MedianWithInterval(accepted_).spread() > policy_.precision;
  }

  // Contention makes a run longer, so contended samples prove it only if they are so far above the
  // bound that no contention explains it.
  bool IsSurelyAboveCut() const {
    if (policy_.cut_above_ns == 0) return false;
    constexpr std::size_t kLeast = 2;
    const bool is_scaled = policy_.reference_mhz > 0 && samples_.clock_before_mhz > 0;
    const double scale = is_scaled ? samples_.clock_before_mhz / policy_.reference_mhz : 1;
    const auto bound = static_cast<double>(policy_.cut_above_ns);
    if (QuickestUnpreempted(samples_) * scale > kMostContention * bound) return true;
    return accepted_.size() >= kLeast && MedianWithInterval(accepted_).low * scale > bound;
  }

  const SamplingPolicy& policy_;
  const Instruments& with_;
  IterationRunner& runner_;
  const std::uint32_t wide_bytes_;  // of the kernel's vectors, if they are wide and warm; or 0
  Samples samples_;
  struct Beside {  // probes beside a repetition, in cycles
    double before = 0;
    double after = 0;
  };
  std::vector<Beside> beside_;
  double probe_ = 0;              // the last one, in cycles
  double scalar_mhz_ = 0;         // the clock before the kernel ran
  double clock_mhz_ = 0;          // the last reading
  std::uint64_t waited_ns_ = 0;   // for a quiet core
  std::vector<double> accepted_;  // of samples_.ns
  std::size_t unpreempted_ = 0;
  std::size_t contended_ = 0;
  double timed_ns_ = 0;         // in accepted repetitions
  std::size_t next_check_ = 0;  // accepted samples at which the interval is checked
  std::uint64_t started_at_ = 0;
  std::uint64_t reading_ns_ = 0;
  std::uint64_t preemptions_ = 0;  // after the last repetition
  bool is_lengthened_ = false;     // the last repetition's time is also that of an interruption
};

}  // namespace

std::uint64_t LongestNs(const SamplingPolicy& policy, std::uint64_t run_ns) {
  // The last repetition begins before the patience is over, unless even the least samples are
  // missing. A few more runs find the iterations.
  return std::max(policy.budget_ns, policy.patience_ns) + 2 * policy.quiet_wait_ns +
         2 * kMostSpeedUpNs + run_ns + (kMostTries + 6) * (run_ns + policy.min_repetition_ns);
}

Samples SampleRound(const SamplingPolicy& policy, const Instruments& instruments,
                    IterationRunner& runner) {
  return Sampling(policy, instruments, runner).Take();
}

}  // namespace loopfleet::worker
