#include "worker/timing/measurement_rounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

constexpr double kNsPerMs = 1e6;
constexpr std::uint32_t kMostSamples = 1'000;                // in all rounds
constexpr std::uint64_t kPrecisionBudgetNs = 1'000'000'000;  // of a job that sets none
constexpr std::uint64_t kColdBudgetNs = 100'000'000;  // of a round; an eviction takes milliseconds
constexpr std::uint32_t kLeastColdSamples = 4;
// Kernels that live in the second-level cache scatter by 2 to 3 % from run to run, so 5 samples do
// not determine them within 1 %.
constexpr std::uint32_t kMaxSamplesPerRound = 20;
constexpr std::uint64_t kRoundBudgetNs = 2'000'000;
// The share of a round's budget that it may wait for a quiet core, so that other kernels get the
// core, and the most. docs/research/timing_experiments.md says what a longer wait gains.
constexpr std::uint64_t kQuietWaitShare = 8;
constexpr std::uint64_t kMostQuietWaitNs = 5'000'000;
// A longer run is not watched by the probes at its ends. On a shared core most pairs of figures of
// such a kernel differ by less than this factor (docs/research/timing_experiments.md).
constexpr double kUnwatchedNs = 1e6;
constexpr double kUnseenSlowdown = 4.0 / 3;
// If a smaller share of the repetitions that count was accepted, a neighbour may have come and gone
// between the probes at their ends, too. The same file has the shares of such figures.
constexpr double kLeastQuietShare = 0.3;

double ClockOf(const Samples& samples) {
  const bool is_known = samples.clock_before_mhz > 0 && samples.clock_after_mhz > 0;
  return is_known ? (samples.clock_before_mhz + samples.clock_after_mhz) / 2 : 0;
}

// 1 if either clock is 0 (unknown).
double ToReference(double clock_mhz, double reference_mhz) {
  return clock_mhz > 0 && reference_mhz > 0 ? clock_mhz / reference_mhz : 1;
}

}  // namespace

MeasurementRounds::MeasurementRounds(const JobSpec& spec, const Options& options)
    : spec_(spec), options_(options) {}

bool MeasurementRounds::HasOwnTime() const { return spec_.precision > 0 || spec_.budget_ms > 0; }

double MeasurementRounds::SpentNs() const {
  if (HasOwnTime() && spec_.cache == CacheState::kCold) return with_evictions_ns_;
  return std::accumulate(rounds_.begin(), rounds_.end(), 0.0, [](double sum, const Round& round) {
    return sum + TotalNs(round.samples);
  });
}

std::size_t MeasurementRounds::sample_count() const {
  std::size_t count = 0;
  for (const Round& round : rounds_) count += round.samples.ns.size();
  return count;
}

bool MeasurementRounds::IsUnwatched() const {
  const Samples& first = rounds_.front().samples;
  return options_.fewest >= 2 && first.iterations == 1 && MedianOf(first.ns) >= kUnwatchedNs;
}

bool MeasurementRounds::IsDisturbed(std::size_t accepted,
                                    const std::vector<std::size_t>& agreeing) const {
  if (options_.fewest < 2) return false;
  if (IsUnwatched()) return accepted < kLeastAccepted || 2 * accepted < sample_count();
  std::size_t counted = agreeing.empty() ? sample_count() : 0;
  for (const std::size_t i : agreeing) counted += rounds_[i].samples.ns.size();
  return accepted >= kLeastAccepted &&
         static_cast<double>(accepted) < kLeastQuietShare * static_cast<double>(counted);
}

SamplingPolicy MeasurementRounds::NextPolicy(bool is_alone) const {
  SamplingPolicy policy{.estimated_run_ns = options_.estimated_run_ns,
                        .cache = spec_.cache,
                        .cut_above_ns = spec_.cut_above_ns,
                        .threads = spec_.threads,
                        .vector_bytes = options_.vector_bytes};
  if (!rounds_.empty()) policy.iterations = rounds_.front().samples.iterations;
  // The first round gets half of the budget, each later one all that is left.
  const std::size_t share = rounds_.empty() ? 2 : 1;
  std::uint64_t budget = 0;  // 0: each round has the policy's own
  if (spec_.precision > 0) {
    policy.precision = spec_.precision;
    policy.most_samples = policy.max_samples;
    budget = kPrecisionBudgetNs;
  } else if (spec_.cache == CacheState::kCold) {
    policy.min_samples = kLeastColdSamples;
    policy.budget_ns = policy.patience_ns = kColdBudgetNs;
  } else {
    policy.precision = kGradeASpread;
    policy.most_samples = kMaxSamplesPerRound;
    policy.budget_ns = kRoundBudgetNs;
    policy.min_samples = options_.expects_long_runs ? kLeastAccepted : policy.min_samples;
  }
  if (spec_.budget_ms > 0) budget = static_cast<std::uint64_t>(spec_.budget_ms * kNsPerMs);
  if (budget > 0) {
    const auto spent = static_cast<std::uint64_t>(SpentNs());
    policy.budget_ns = std::max<std::uint64_t>((budget - std::min(budget, spent)) / share, 1);
    policy.patience_ns = policy.budget_ns;
    policy.least_timed_ns = std::min(policy.least_timed_ns, policy.budget_ns);
  }
  const auto taken = static_cast<std::uint32_t>(sample_count());
  policy.max_samples = std::max<std::uint32_t>((kMostSamples - std::min(kMostSamples, taken)) / 2,
                                               policy.min_samples);
  const std::uint64_t share_ns = std::min(policy.budget_ns / kQuietWaitShare, kMostQuietWaitNs);
  policy.quiet_wait_ns = rounds_.empty() && WaitsLong(is_alone) ? kMostQuietWaitNs : share_ns;
  // A cold sample is a single run, so it would take too many samples to reach a total time.
  if (spec_.cache == CacheState::kCold) policy.least_timed_ns = 0;
  return policy;
}

bool MeasurementRounds::IsLong(const Samples& samples) const {
  if (samples.ns.empty() || samples.iterations != 1) return false;
  const auto quickest = std::ranges::min(samples.ns);
  return quickest >= static_cast<double>(options_.first_wait.count());
}

void MeasurementRounds::Add(Samples samples, double reference_mhz) {
  with_evictions_ns_ += static_cast<double>(samples.spent_ns);
  ++looks_;
  constexpr std::size_t kLeast = 2;
  const bool is_one_round = options_.fewest < 2 || samples.end == SamplingEnd::kCut;
  if (is_one_round || !IsLong(samples)) {
    return AddRound(std::move(samples), reference_mhz, kLeast);
  }
  for (std::size_t i = 0; i < samples.ns.size(); ++i) {
    if (i > 0 && !HasOwnTime()) ++looks_;
    Samples one = samples;
    one.ns = {samples.ns[i]};
    one.flags = {samples.flags[i]};
    AddRound(std::move(one), reference_mhz, 1);
  }
}

void MeasurementRounds::AddRound(Samples samples, double reference_mhz, std::size_t least) {
  Round round{.samples = std::move(samples), .look = looks_};
  round.clock_mhz = ClockOf(round.samples);
  round.to_reference = ToReference(round.clock_mhz, reference_mhz);
  std::vector<double> contended_ns;
  for (std::size_t i = 0; i < round.samples.ns.size(); ++i) {
    const std::uint8_t flags = round.samples.flags[i];
    if (flags == kSampleAccepted) round.accepted_ns.push_back(round.samples.ns[i]);
    if (flags == kSampleContended) contended_ns.push_back(round.samples.ns[i]);
  }
  const bool is_clear = round.accepted_ns.size() >= least;
  const std::vector<double>& counted = is_clear ? round.accepted_ns : contended_ns;
  if (counted.size() >= least && !ClockMoved(round.samples)) {
    round.worth = is_clear ? Round::Worth::kClear : Round::Worth::kConfirm;
    round.median_ns = MedianWithInterval(counted).median;
    round.median = round.median_ns * (round.clock_mhz > 0 ? round.clock_mhz / kMhzPerPerNs : 1);
  }
  rounds_.push_back(std::move(round));
}

std::vector<std::size_t> MeasurementRounds::Agreeing() const {
  std::vector<std::size_t> by_median;
  for (std::size_t i = 0; i < rounds_.size(); ++i) {
    if (rounds_[i].worth != Round::Worth::kNone) by_median.push_back(i);
  }
  std::ranges::sort(by_median, {}, [&](std::size_t i) { return rounds_[i].median; });
  // Disturbances make a kernel slower, so the quickest confirmed rounds are right. A single round
  // may be too quick in cycles, because its clock was misjudged.
  for (std::size_t i = 0; i + options_.fewest <= by_median.size(); ++i) {
    const double bound = rounds_[by_median[i]].median * (1 + options_.agreement);
    std::vector<std::size_t> agreeing;
    for (std::size_t j = i; j < by_median.size() && rounds_[by_median[j]].median <= bound; ++j) {
      agreeing.push_back(by_median[j]);
    }
    if (agreeing.size() < options_.fewest) continue;
    const bool is_clear = std::ranges::any_of(
        agreeing, [&](std::size_t k) { return rounds_[k].worth == Round::Worth::kClear; });
    const bool is_refuted =
        std::any_of(by_median.begin(), by_median.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](std::size_t k) { return IsRefutedBy(rounds_[k], agreeing); });
    if (!is_clear || is_refuted) agreeing.clear();
    return agreeing;
  }
  return {};
}

// A much quicker round shows that all agreeing rounds were disturbed alike, as by a neighbour that
// no probe sees. It has to be quicker in wall time too, which a misjudged clock does not affect.
bool MeasurementRounds::IsRefutedBy(const Round& round,
                                    const std::vector<std::size_t>& agreeing) const {
  constexpr double kSurely = 0.97;
  return std::ranges::all_of(agreeing, [&](std::size_t k) {
    return round.median < kSurely * rounds_[k].median &&
           round.median_ns < kSurely * rounds_[k].median_ns;
  });
}

double MeasurementRounds::TargetSpread() const {
  return spec_.precision > 0 ? spec_.precision : kGradeASpread;
}

bool MeasurementRounds::IsCut() const {
  constexpr std::size_t kLeast = 2;  // accepted samples: an executor may have sent anything
  std::size_t shown = 0;
  bool is_proven = false;
  for (const Round& round : rounds_) {
    const bool proves = ProvesCut(round);
    if (round.samples.end == SamplingEnd::kCut && (round.accepted_ns.size() >= kLeast || proves)) {
      ++shown;
      is_proven |= proves;
    } else if (!round.accepted_ns.empty()) {
      return false;  // contended throughout, it would say nothing
    }
  }
  return is_proven || shown >= 2;
}

bool MeasurementRounds::ProvesCut(const Round& round) const {
  constexpr double kBeyondDoubt = 2;
  constexpr std::size_t kLeast = 2;
  const auto bound = static_cast<double>(spec_.cut_above_ns);
  const auto is_above = [&](double ns, double factor) {
    return ns * round.to_reference > factor * bound;
  };
  if (is_above(QuickestUnpreempted(round.samples), kMostContention)) return true;
  return round.accepted_ns.size() >= kLeast &&
         is_above(MedianWithInterval(round.accepted_ns).low, kBeyondDoubt);
}

std::optional<Nanos> MeasurementRounds::NextIn(bool is_alone) const {
  LF_CHECK(!rounds_.empty(), "no round yet");
  if (IsCut()) return std::nullopt;
  if (rounds_.size() < options_.fewest) {
    // The first round has waited that long already.
    const bool has_waited = WaitsLong(is_alone) && IsContendedThroughout();
    return has_waited ? Nanos{0} : options_.first_wait;
  }
  const double spent = SpentNs();
  if (looks_ >= options_.most || sample_count() >= kMostSamples ||
      (spec_.budget_ms > 0 && spent >= spec_.budget_ms * kNsPerMs) ||
      spent >= static_cast<double>(LongEnough().count())) {
    return std::nullopt;
  }
  if (is_alone && rounds_.size() >= options_.most_in_vain && IsContendedThroughout() &&
      !AsksForMore()) {
    return std::nullopt;
  }
  if (const auto agreeing = Agreeing(); !agreeing.empty() && IsEnough(agreeing)) {
    return std::nullopt;
  }
  return options_.first_wait * (std::int64_t{1} << (looks_ - 1));
}

bool MeasurementRounds::WaitsLong(bool is_alone) const {
  return is_alone && spec_.budget_ms == 0 && spec_.cache == CacheState::kWarm;
}

bool MeasurementRounds::AsksForMore() const { return HasOwnTime() || spec_.min_grade < Grade::kD; }

bool MeasurementRounds::IsContendedThroughout() const {
  return std::ranges::all_of(rounds_, [](const Round& round) {
    return round.accepted_ns.empty() &&
           std::ranges::count(round.samples.flags, std::uint8_t{kSampleContended}) >= 2;
  });
}

Nanos MeasurementRounds::LongEnough() const {
  const bool has_clear =
      std::ranges::find(rounds_, Round::Worth::kClear, &Round::worth) != rounds_.end();
  if (AsksForMore()) return options_.longest;
  return has_clear ? options_.long_enough : options_.long_enough_contended;
}

bool MeasurementRounds::IsEnough(const std::vector<std::size_t>& agreeing) const {
  std::set<std::size_t> clear_looks;
  for (const Round& round : rounds_) {
    if (round.worth == Round::Worth::kClear) clear_looks.insert(round.look);
  }
  const std::size_t clear = clear_looks.size();
  const Measurement figure = Summarise(kMhzPerPerNs);  // in cycles, as in Agreeing
  const std::size_t accepted = AcceptedSamples(figure);
  if (accepted < kLeastAccepted || IsDisturbed(accepted, agreeing)) return false;
  if (figure.spread <= TargetSpread()) return true;
  if (spec_.precision > 0 || figure.grade > spec_.min_grade) return false;  // A is the smallest
  if (clear >= options_.most_scattered) return true;
  // Intervals shrink with the root of the number of samples.
  const double with_another =
      std::sqrt(static_cast<double>(clear) / (static_cast<double>(clear) + 1));
  return figure.spread * with_another > TargetSpread();
}

std::optional<double> MeasurementRounds::MomentsApart() const {
  std::vector<std::size_t> agreeing = Agreeing();
  std::ranges::sort(agreeing);
  for (const std::size_t i : agreeing) {
    const Round& first = rounds_[agreeing.front()];
    if (rounds_[i].look == first.look) continue;
    const auto [low, high] = std::minmax(first.median, rounds_[i].median);
    return high / low - 1;
  }
  return std::nullopt;
}

double MeasurementRounds::LeastHalfWidth(const std::vector<std::size_t>& agreeing) const {
  std::set<std::size_t> looks;
  for (const std::size_t i : agreeing) looks.insert(rounds_[i].look);
  const double moments = looks.empty() ? 2 : static_cast<double>(looks.size());
  return options_.moments_apart * std::sqrt(2 / moments);
}

Measurement MeasurementRounds::Summarise(double reference_mhz) const {
  LF_CHECK(!rounds_.empty(), "no round yet");
  const std::vector<std::size_t> agreeing = Agreeing();
  Measurement measurement;
  measurement.iterations_per_sample = rounds_.front().samples.iterations;
  std::vector<double> accepted;
  std::vector<double> unpreempted;
  double slowdown = 1;
  double lowest = 0;   // of the medians of the rounds that count, at each one's slowest clock
  double highest = 0;  // at its fastest
  double clocks = 0;
  for (std::size_t i = 0; i < rounds_.size(); ++i) {
    const Round& round = rounds_[i];
    const Samples& samples = round.samples;
    const bool counts = agreeing.empty() || std::ranges::find(agreeing, i) != agreeing.end();
    const double scale = ToReference(round.clock_mhz, reference_mhz);
    slowdown = std::max(slowdown, samples.slowdown);
    if (counts) {
      measurement.clock_before_mhz += samples.clock_before_mhz;
      measurement.clock_after_mhz += samples.clock_after_mhz;
      ++clocks;
      if (!round.accepted_ns.empty()) {
        const double median = MedianWithInterval(round.accepted_ns).median;
        const auto [slow, fast] = std::minmax(samples.clock_before_mhz, samples.clock_after_mhz);
        const double low = median * ToReference(slow, reference_mhz);
        lowest = lowest == 0 ? low : std::min(lowest, low);
        highest = std::max(highest, median * ToReference(fast, reference_mhz));
      }
    }
    for (std::size_t k = 0; k < samples.ns.size(); ++k) {
      const double ns = samples.ns[k] * scale;
      const bool is_apart = !counts && samples.flags[k] == kSampleAccepted;
      measurement.samples_ns.push_back(ns);
      measurement.sample_flags.push_back(is_apart ? static_cast<std::uint8_t>(kSampleOutlierRound)
                                                  : samples.flags[k]);
      if (counts && samples.flags[k] == kSampleAccepted) accepted.push_back(ns);
      if ((samples.flags[k] & kSamplePreempted) == 0) unpreempted.push_back(ns);
    }
  }
  measurement.clock_before_mhz /= clocks;
  measurement.clock_after_mhz /= clocks;

  const bool is_accepted = accepted.size() >= kLeastAccepted;
  const bool is_disturbed = IsDisturbed(accepted.size(), agreeing);
  const bool all_preempted = !is_accepted && unpreempted.empty();
  // Contended samples may be right. Preempted ones are known to be too slow, by an unknown amount.
  std::vector<double> used = is_accepted     ? std::move(accepted)
                             : all_preempted ? measurement.samples_ns
                                             : std::move(unpreempted);
  std::ranges::sort(used);
  Interval interval = MedianWithInterval(used);
  if (!is_accepted) {
    // All samples may be too slow by as much as the probes were, and equally so: that they agree
    // proves nothing.
    interval.low = std::min(interval.low, interval.median / slowdown);
  } else if (agreeing.empty()) {
    // The true time may be that of any round, and at either of its clocks.
    interval.low = std::min(interval.low, lowest);
    interval.high = std::max(interval.high, highest);
  }
  if (is_accepted) {
    const double least = LeastHalfWidth(agreeing) * interval.median;
    interval.low = std::min(interval.low, interval.median - least);
    interval.high = std::max(interval.high, interval.median + least);
  }
  if (is_disturbed) {
    interval.low = std::min(interval.low, interval.median / kUnseenSlowdown);
    interval.high = std::max(interval.high, interval.median * kUnseenSlowdown);
  }
  const bool is_scattered = GradeOf(interval.spread()) > Grade::kB;
  if (slowdown > 1 && (!is_accepted || (is_scattered && (is_disturbed || agreeing.empty())))) {
    // A second measurement may meet a worse neighbour. That alone does not make a figure useless.
    const double highest_of_c = interval.low + 1.999 * kMaxSpread * interval.median;
    const double slowest = std::min(options_.host_slowdown * used.front(), highest_of_c);
    interval.high = std::max(interval.high, slowest);
  }
  measurement.elapsed_ns = interval.median;
  measurement.elapsed_low_ns = interval.low;
  measurement.elapsed_high_ns = interval.high;
  measurement.elapsed_min_ns = used.front();
  measurement.elapsed_mean_ns =
      std::accumulate(used.begin(), used.end(), 0.0) / static_cast<double>(used.size());
  measurement.spread = interval.spread();
  measurement.grade = GradeOf(measurement.spread);
  if (!is_accepted) measurement.grade = std::max(measurement.grade, Grade::kC);
  if (all_preempted) measurement.grade = Grade::kD;
  if (agreeing.empty() && measurement.grade == Grade::kA) measurement.grade = Grade::kB;
  return measurement;
}

}  // namespace loopfleet::worker
