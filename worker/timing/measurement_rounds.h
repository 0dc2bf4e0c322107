#pragma once
// MeasurementRounds: one kernel, looked at in several moments. How far the samples of a single look
// agree says nothing about what disturbed all of them alike, so a good figure is one that two
// moments agree on. Decides whether another look is needed, when, and how long it may be; and sums
// all of them up. Knows no clock and no device. Belongs to one thread.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/job/failure.h"
#include "common/job/job_spec.h"
#include "common/job/measurement.h"
#include "worker/timing/sampler.h"

namespace loopfleet::worker {

// The name of the default policy: 2 to 5 looks of 5 to 20 repetitions of 60 us, ended when two
// agree, unless a third can make an A of it. Stored results are looked up by it, so a new name
// empties the store for every job. Change it only when a figure means something else: another
// statistic, other work in the timed region, another state of the caches, another clock. Rules that
// decide when to look, how long to wait or when to stop (precision and budget among them), and what
// the probes cost, keep the name.
inline constexpr std::string_view kPolicyName = "agreed2to5x5to20x60us-v5";

class MeasurementRounds {
 public:
  struct Options {
    // That have to agree.
    std::size_t fewest = 2;
    // Where they do not, or the core was contended.
    std::size_t most = 5;
    // Where two agree and the kernel's own samples scatter too far for the precision that was asked
    // for; or for the grade, by so little that a third look is likely to be enough.
    std::size_t most_scattered = 3;
    // Before the second look, and twice as long before each further one: most disturbances take
    // less than 5 ms here (docs/MEASUREMENT.md), and all waits together 75 ms.
    Nanos first_wait = std::chrono::milliseconds(5);
    double agreement = 0.01;   // of the medians, relative
    double likely_run_ns = 0;  // SamplingPolicy::likely_run_ns, for the first look
    // A kernel so slow that its looks took as long gets no more than two.
    Nanos long_enough = std::chrono::seconds(1);
  };
  MeasurementRounds(const JobSpec& spec, const Options& options);

  // For the next look, with what the job asks for; what has to be known of the device is left to
  // fill in.
  SamplingPolicy NextPolicy() const;
  // `reference_mhz`: the clock that the job's bound is stated at; 0: the wall's time is.
  void Add(Samples samples, double reference_mhz = 0);
  bool is_empty() const { return rounds_.empty(); }

  // How long to wait until the next look; nullopt: there is enough, or no more to be had. After
  // Add.
  std::optional<Nanos> NextIn() const;

  // A run surely takes longer than the job's bound, at the reference clock: two moments say so, or
  // one says twice the bound, or ten times where the core was contended.
  bool IsCut() const;
  std::size_t sample_count() const;
  // The figure, with times at the reference clock (0: as the wall has them), or UNSTABLE_TIMING.
  // After Add.
  std::expected<Measurement, Failure> Summarise(double reference_mhz) const;

 private:
  struct Round {
    Samples samples;
    double clock_mhz = 0;     // 0: not known
    double to_reference = 1;  // from times on the wall to times at the reference clock
    std::vector<double> accepted_ns;
    enum class Worth : std::uint8_t {
      kNone,     // its clock moved, or there is too little of it
      kConfirm,  // contended, which makes kernels slower only: can say that another is not too
                 // quick
      kClear,    // nothing speaks against it
    };
    Worth worth = Worth::kNone;
    double median = 0;     // of what was accepted, else of what was contended; cycles, if known
    double median_ns = 0;  // the same on the wall
  };

  double SpentNs() const;  // in samples
  // The figure of those that agree is as narrow as it has to be, or will not be so with one more.
  bool IsEnough() const;
  // The indices of looks that agree with each other, the quickest such, one of them clear at least;
  // empty: there are none, or there are quicker ones that agree and are contended, or a single one
  // that was so much quicker that all of these must have been disturbed.
  std::vector<std::size_t> Agreeing() const;
  bool IsRefutedBy(const Round& look, const std::vector<std::size_t>& agreeing) const;
  double TargetSpread() const;
  // One moment is enough.
  bool IsCutBeyondDoubt(const Round& look) const;

  const JobSpec spec_;
  const Options options_;
  std::vector<Round> rounds_;
};

}  // namespace loopfleet::worker
