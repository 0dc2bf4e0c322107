#pragma once
// HostTrial: what figures of this host are worth. Measures a few kernels again and again, with a
// new worker each time, in batches and one at a time, and compares the figures with each other.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/job/measurement.h"
#include "common/job/stage.h"

namespace loopfleet::client {

struct TrialFigure {
  std::size_t kernel = 0;
  // Counts the worker's starts. Figures of different starts share no process and no memory.
  std::size_t start = 0;
  bool is_alone = false;  // no other kernel was to be measured; else one of a batch
  double elapsed_ns = 0;
  double low_ns = 0;  // its interval
  double high_ns = 0;
  Grade grade = Grade::kC;
};

// One evaluation of a kernel alone.
struct TrialLatency {
  double ms = 0;      // from submission to outcome
  double run_ms = 0;  // one run of the kernel; 0: it has no figure
  StageDurations stages;
};

struct HostTrial {
  std::vector<TrialFigure> figures;
  std::size_t failed = 0;  // evaluations without a figure
  std::vector<TrialLatency> latencies;
  std::vector<double> peaks;  // flop per second of one core, as measured at each start
};

// How far two figures of a kernel lie apart, over pairs from different starts. Relative: 0.01 is
// 1 %. NaN without pairs.
struct Agreement {
  std::size_t pairs = 0;
  double p50 = 0;
  double p95 = 0;
};

// Five runs of such a kernel, which a figure takes, are short beside the rest of an evaluation.
inline constexpr double kShortRunMs = 1;

struct TrialReport {
  std::size_t figures = 0;
  std::size_t failed = 0;
  std::size_t starts = 0;
  std::map<Grade, double> share;         // of the figures
  std::map<Grade, Agreement> agreement;  // of pairs whose poorer figure has this grade
  Agreement good;                        // of pairs of grade A or B
  double good_share = 0;                 // of the figures: grade A or B
  // Share of pairs in which the interval of one figure holds the other, whose grade is at least as
  // good: a figure of a worse grade does not count against a better one.
  double coverage = 0;
  // The figure alone against the one in a batch, by kernel: medians over the starts, relative.
  double alone_to_batch_p50 = 0;  // absolute values
  double alone_to_batch_max = 0;
  double latency_p50_ms = 0;
  double latency_p99_ms = 0;
  double latency_short_p99_ms = 0;  // of kernels that run for kShortRunMs at most
  StageDurations slowest;           // the mean of the slowest hundredth
  double peak_range = 0;            // largest less smallest, relative to the median
};
TrialReport Assess(const HostTrial& trial);

struct TrialOptions {
  std::filesystem::path programs;                 // as in LocalClusterOptions
  Nanos duration = std::chrono::seconds(60);      // no start begins later; three at least
  std::function<void(double share)> on_progress;  // of the duration, 0 to 1
};
// Uses a cluster of its own for each start. Another worker on this host takes turns with it on the
// timing core.
Result<HostTrial> RunTrial(const TrialOptions& options);

}  // namespace loopfleet::client
