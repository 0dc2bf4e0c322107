#pragma once
// MeasurementRounds: the rounds of one kernel, taken at different moments. The scatter within one
// round does not reveal what disturbed all of its samples alike, so a good figure needs two rounds
// that agree. Decides whether another round is needed, when, and how long it may take, and combines
// the rounds into a measurement. Knows no clock and no device. Belongs to one thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/job/job_spec.h"
#include "common/job/measurement.h"
#include "worker/timing/sampler.h"

namespace loopfleet::worker {

// The name of the default policy: 2 to 5 rounds of 5 to 20 repetitions of 60 us. It ends when two
// rounds agree, unless a third could make the figure grade A, or when enough time is spent. Stored
// results are looked up by this name, so a new name invalidates all of them. Change it only when a
// figure means something else: another statistic, other work in the timed region, another state of
// the caches, another clock. Rules that decide when to begin a round, how long to wait or when to
// stop (precision and budget among them), how wide an interval is, and what the probes cost, keep
// the name.
inline constexpr std::string_view kPolicyName = "agreed2to5x5to20x60us-v6";

class MeasurementRounds {
 public:
  struct Options {
    // Rounds that have to agree.
    std::size_t fewest = 2;
    // The most rounds, if they do not agree or the core was contended. For a job that asks for a
    // precision or budget, long repetitions taken in one go (Add) are one look and count as one.
    std::size_t most = 5;
    // The most clear rounds if two agree, but the samples scatter so little too much for grade A
    // that a third round is likely to be enough. A job that asks for a precision, or for a better
    // grade than it has, may have `most`.
    std::size_t most_scattered = 3;
    // The most rounds while the worker has no other job, if the core was contended throughout,
    // though the first one waited long for a quiet core (docs/research/timing_experiments.md). Not
    // for jobs that ask for a precision, budget or grade.
    std::size_t most_in_vain = 2;
    // Before the second round; each further wait is twice as long. Most disturbances last less than
    // 5 ms (docs/research/timing_experiments.md); all waits together take 75 ms, or 20 ms
    // if nothing else wants the core.
    Nanos first_wait = std::chrono::milliseconds(5);
    double agreement = 0.01;  // of the medians, relative difference
    // DeviceHealth::moments_apart(): how far two moments of a kernel lie apart on this host. The
    // interval of a figure of two rounds is at least as wide to each side; of more rounds, less so
    // by the root of their number.
    double moments_apart = 0;
    // DeviceHealth::slowdown(): how much neighbours slow this host. The interval of a figure that
    // they may have slowed reaches as far above its quickest sample. 1: no further than its
    // samples.
    double host_slowdown = 1;
    double estimated_run_ns = 0;     // SamplingPolicy::estimated_run_ns
    std::uint32_t vector_bytes = 0;  // Kernel::vector_bytes
    // A run takes about as long as first_wait or longer, so one round can be enough.
    bool expects_long_runs = false;
    // No further round once two or more have taken this long in all and one of them is clear, so
    // that slow kernels need few runs. Not for jobs that ask for a precision, budget or grade.
    Nanos long_enough = std::chrono::milliseconds(10);
    // The same where none is clear: a slow kernel's figure comes soon and says that it is poor.
    Nanos long_enough_contended = std::chrono::milliseconds(100);
    // No further round once two or more have taken this long in all.
    Nanos longest = std::chrono::seconds(1);
  };
  MeasurementRounds(const JobSpec& spec, const Options& options);

  // The policy of the next round, as the job asks for it. The caller fills in what depends on the
  // device. `is_alone`: the worker has no other job, so the round may wait longer for a quiet core.
  SamplingPolicy NextPolicy(bool is_alone = false) const;
  // `reference_mhz`: the clock at which the job's bound is stated; 0: the bound is wall time.
  // Long repetitions of one round are as far apart as two rounds, so each counts as a round. Those
  // of a job with a precision or budget may be many: together they are one look.
  void Add(Samples samples, double reference_mhz = 0);
  bool is_empty() const { return rounds_.empty(); }

  // How long after the first repetition of the last round the next one may begin, waits for a quiet
  // core not counted. nullopt: no further round, because the figure is good enough or a limit is
  // reached. `is_alone`: the worker has no other job. Call after Add.
  std::optional<Nanos> NextIn(bool is_alone = false) const;

  // Whether one run certainly takes longer than the job's bound, at the reference clock: two rounds
  // show it, or one shows twice the bound (ten times if the core was contended).
  bool IsCut() const;
  std::size_t sample_count() const;
  // Relative difference of the medians of the first two rounds, of different looks, that agree;
  // nullopt: none do.
  std::optional<double> MomentsApart() const;
  // The figure, with times at the reference clock (0: wall times). Call after Add.
  Measurement Summarise(double reference_mhz) const;

 private:
  struct Round {
    Samples samples;
    std::size_t look = 0;
    double clock_mhz = 0;     // 0: not known
    double to_reference = 1;  // factor from wall time to time at the reference clock
    std::vector<double> accepted_ns;
    enum class Worth : std::uint8_t {
      kNone,     // its clock moved, or it has too few samples
      kConfirm,  // contended, so never too quick: can confirm a clear round
      kClear,    // accepted samples and a steady clock
    };
    Worth worth = Worth::kNone;
    double median = 0;     // of accepted samples, else of contended ones; cycles, if known
    double median_ns = 0;  // the same in wall time
  };

  // With at least `least` samples that count, the round has a median.
  void AddRound(Samples samples, double reference_mhz, std::size_t least);
  // Whether a repetition takes as long as the wait between two rounds.
  bool IsLong(const Samples& samples) const;
  bool HasOwnTime() const;
  // In all samples. Of a cold job that sets a limit to it, with the evictions, which take longest.
  double SpentNs() const;
  // A single run takes so long that a neighbour may come and go between the probes at its ends.
  bool IsUnwatched() const;
  // So few samples were accepted that what disturbed the others may have slowed these unseen: less
  // than half of such a kernel's, or less than three tenths of the rounds that count.
  bool IsDisturbed(std::size_t accepted, const std::vector<std::size_t>& agreeing) const;
  // The first round waits for a quiet core as long as the second one would be away.
  bool WaitsLong(bool is_alone) const;
  // The job wants more than the first figure that there is.
  bool AsksForMore() const;
  // Each round has contended repetitions and no accepted one. A long run is a round of its own, of
  // one repetition, which is not enough.
  bool IsContendedThroughout() const;
  Nanos LongEnough() const;
  // Whether the figure of the agreeing rounds is narrow enough, or one more round would not make it
  // so.
  bool IsEnough(const std::vector<std::size_t>& agreeing) const;
  // The indices of the quickest rounds that agree with each other. Empty if no rounds agree, if
  // none of these is clear, or if a single round was so much quicker that all of these must have
  // been disturbed.
  std::vector<std::size_t> Agreeing() const;
  // Of the figure, by Options::moments_apart; relative to the median.
  double LeastHalfWidth(const std::vector<std::size_t>& agreeing) const;
  bool IsRefutedBy(const Round& round, const std::vector<std::size_t>& agreeing) const;
  double TargetSpread() const;
  // Whether this round alone proves it.
  bool ProvesCut(const Round& round) const;

  const JobSpec spec_;
  const Options options_;
  std::vector<Round> rounds_;
  std::size_t looks_ = 0;  // at one moment each: rounds, or calls of Add (see there)
  double with_evictions_ns_ = 0;
};

}  // namespace loopfleet::worker
