#include "client/cli/text/host_trial_text.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "common/base/counted.h"

namespace loopfleet::client {
namespace {

using monitoring::Finding;
using monitoring::Severity;

// What an idle host should reach.
constexpr double kEnoughGood = 0.8;
constexpr double kEnoughCoverage = 0.9;
constexpr double kMostAloneToBatch = 0.015;
constexpr double kMostPeakRange = 0.02;
// Beyond these, figures do not tell kernels apart.
constexpr double kTooFewGood = 0.5;
constexpr double kTooFarApart = 0.1;

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string GradesText(const TrialReport& report) {
  std::vector<std::string> grades;
  for (const auto& [grade, share] : report.share) {
    const auto agreement = report.agreement.find(grade);
    std::string text = fmt::format("{} {:.0f} %", EnumName(grade), 100 * share);
    if (agreement != report.agreement.end()) {
      text += fmt::format(" (within {})", Percent(agreement->second.p95));
    }
    grades.push_back(text);
  }
  return fmt::format("{}", fmt::join(grades, ", "));
}

Json OrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json AgreementJson(const Agreement& agreement) {
  return {
      {"pairs", agreement.pairs}, {"p50", OrNull(agreement.p50)}, {"p95", OrNull(agreement.p95)}};
}

}  // namespace

Finding FindingOf(const TrialReport& report) {
  Finding finding{.check = std::string(kTrialCheck)};
  if (report.good.pairs == 0) {
    finding.severity = Severity::kProblem;
    finding.what = fmt::format("no two figures of grade A or B to compare in {} starts of a worker",
                               report.starts);
  } else {
    finding.what = fmt::format(
        "tells kernels apart that differ by {} or more: two figures of grade A or B ({:.0f} % of "
        "all) are that close in 95 of 100 pairs",
        Percent(report.good.p95), 100 * report.good_share);
    const bool is_poor = report.good_share < kTooFewGood || report.good.p95 > kTooFarApart;
    const bool is_fair = report.good_share < kEnoughGood || report.coverage < kEnoughCoverage ||
                         report.alone_to_batch_p50 > kMostAloneToBatch ||
                         report.peak_range > kMostPeakRange;
    finding.severity = is_poor ? Severity::kProblem : is_fair ? Severity::kNotice : Severity::kGood;
  }
  finding.why = fmt::format("{} of {}", Counted(report.figures, "figure", "figures"),
                            Counted(report.starts, "start", "starts"));
  if (report.figures > 0) finding.why += ": " + GradesText(report);
  const auto add = [&](double value, const std::string& text) {
    if (std::isfinite(value)) finding.why += "; " + text;
  };
  add(report.coverage,
      fmt::format("{:.0f} % of the intervals hold another figure as good", 100 * report.coverage));
  add(report.alone_to_batch_p50,
      fmt::format("alone and in a batch differ by {}", Percent(report.alone_to_batch_p50)));
  add(report.latency_p50_ms,
      fmt::format("one at a time {:.0f} ms (99 of 100: {:.0f} ms; of kernels of {:.0f} ms or less: "
                  "{:.0f} ms)",
                  report.latency_p50_ms, report.latency_p99_ms, kShortRunMs,
                  report.latency_short_p99_ms));
  add(report.peak_range, fmt::format("the measured peak within {}", Percent(report.peak_range)));
  if (report.failed > 0)
    finding.why += fmt::format("; {} failed", Counted(report.failed, "evaluation", "evaluations"));
  return finding;
}

Json TrialJson(const TrialReport& report) {
  Json slowest = Json::object();
  for (const Stage stage : kStages) {
    slowest[std::string(StageName(stage))] =
        std::chrono::duration<double, std::milli>(report.slowest[stage]).count();
  }
  Json grades = Json::object();
  for (const auto& [grade, share] : report.share) {
    const auto agreement = report.agreement.find(grade);
    grades[std::string(EnumName(grade))] = {
        {"share", share},
        {"differences",
         agreement == report.agreement.end() ? Json(nullptr) : AgreementJson(agreement->second)}};
  }
  return {{"figures", report.figures},
          {"failed", report.failed},
          {"starts", report.starts},
          {"grades", grades},
          {"good_share", report.good_share},
          {"good_differences", AgreementJson(report.good)},
          {"coverage", OrNull(report.coverage)},
          {"alone_to_batch_p50", OrNull(report.alone_to_batch_p50)},
          {"alone_to_batch_max", OrNull(report.alone_to_batch_max)},
          {"latency_p50_ms", OrNull(report.latency_p50_ms)},
          {"latency_p99_ms", OrNull(report.latency_p99_ms)},
          {"latency_short_p99_ms", OrNull(report.latency_short_p99_ms)},
          {"slowest_hundredth_ms", slowest},
          {"peak_range", OrNull(report.peak_range)}};
}

}  // namespace loopfleet::client
