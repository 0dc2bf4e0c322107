// `loopfleet doctor`: finds settings of this machine that spoil measurements, and how to fix them;
// measures, if asked, how well figures repeat here.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/host_trial_text.h"
#include "client/cli/text/progress_bar.h"
#include "client/host_trial.h"
#include "client/local_cluster.h"
#include "client/outcome_json.h"
#include "common/base/counted.h"
#include "monitoring/host/core_plan.h"
#include "monitoring/host/host_inspection.h"

namespace loopfleet::client {
namespace {

using monitoring::Finding;
using monitoring::Severity;

struct DoctorFlags {
  bool json = false;
  double measure_s = 0;  // 0: only look
  int core = -1;
  std::string root;
};

std::string_view Mark(Severity severity) {
  switch (severity) {
    case Severity::kGood: return "ok";
    case Severity::kUnknown: return "?";
    case Severity::kNotice: return "note";
    case Severity::kProblem: return "PROBLEM";
  }
  return "";
}

std::string FindingText(const Finding& finding) {
  std::string text =
      fmt::format("{:<8} {:<15} {}\n", Mark(finding.severity), finding.check, finding.what);
  constexpr std::string_view kIndent = "                         ";
  if (!finding.why.empty()) text += fmt::format("{}{}\n", kIndent, finding.why);
  if (!finding.mend.empty()) text += fmt::format("{}$ {}\n", kIndent, finding.mend);
  return text;
}

std::vector<Finding> Inspect(const DoctorFlags& flags) {
  monitoring::InspectionOptions options;
  if (flags.core >= 0) options.core = flags.core;
  if (flags.root.empty()) {  // the processors that a worker started here would have
    if (auto allowed = monitoring::AllowedProcessors()) options.processors = *std::move(allowed);
  }
  const monitoring::HostFiles files =
      flags.root.empty() ? monitoring::HostFiles()
                         : monitoring::HostFiles(flags.root + "/proc", flags.root + "/sys");
  return monitoring::InspectHost(files, options);
}

// If the trial fails, the finding says why and has no figures.
std::pair<Finding, Json> Measure(double seconds) {
  constexpr std::uint32_t kSteps = 1'000;
  ProgressBar bar;
  const auto trial = RunTrial(
      {.programs = OwnDirectory(),
       .duration = std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(seconds)),
       .on_progress = [&](double share) {
         bar.Show({.done = static_cast<std::uint32_t>(share * kSteps), .total = kSteps});
       }});
  if (!trial) {
    return {{.check = std::string(kTrialCheck),
             .severity = Severity::kProblem,
             .what = fmt::format("could not be measured: {}", trial.error().message)},
            nullptr};
  }
  const TrialReport report = Assess(*trial);
  return {FindingOf(report), TrialJson(report)};
}

Json FindingJson(const Finding& finding) {
  return {{"check", finding.check},
          {"severity", monitoring::NameOf(finding.severity)},
          {"what", finding.what},
          {"why", finding.why},
          {"mend", finding.mend.empty() ? Json(nullptr) : Json(finding.mend)}};
}

int RunDoctor(const DoctorFlags& flags) {
  std::vector<Finding> findings = Inspect(flags);
  Json array = Json::array();
  for (const Finding& finding : findings) {
    if (!flags.json) fmt::print("{}", FindingText(finding));
    array.push_back(FindingJson(finding));
  }
  if (flags.measure_s > 0) {
    std::fflush(stdout);
    const auto [finding, figures] = Measure(flags.measure_s);
    if (!flags.json) fmt::print("{}", FindingText(finding));
    array.push_back(FindingJson(finding));
    array.back()["figures"] = figures;
    findings.push_back(finding);
  }
  const auto problems = std::ranges::count(findings, Severity::kProblem, &Finding::severity);
  const auto notices = std::ranges::count(findings, Severity::kNotice, &Finding::severity);
  if (flags.json) {
    fmt::print("{}\n", Dump(array));
  } else {
    fmt::print("\n{}, {}; commands behind $ are for root's shell, until the next boot\n",
               Counted(problems, "problem", "problems"), Counted(notices, "note", "notes"));
  }
  return problems == 0 ? kExitOk : kExitFailed;
}

}  // namespace

void AddDoctorCommand(CommandLine& line) {
  const auto flags = std::make_shared<DoctorFlags>();
  CLI::App& doctor = line.AddCommand(
      line.root(),
      {.name = "doctor",
       .description = "What about this machine spoils measurements, and what mends it (no cluster)",
       .examples = "loopfleet doctor\nloopfleet doctor --measure\nloopfleet doctor --json | jq "
                   "'.[] | select(.severity == "
                   "\"problem\")'"},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return RunDoctor(*flags); });
  doctor.add_flag("--json", flags->json, "print one JSON array");
  auto* const measure =
      doctor
          .add_option(
              "--measure", flags->measure_s,
              "also measure how well figures of this host repeat, for about so many seconds "
              "(60 if none are given), with workers of its own")
          ->expected(0, 1)
          ->default_str("60")
          ->check(CLI::Range(1.0, 86'400.0))
          ->type_name("[SECONDS]");
  doctor.add_option("--core", flags->core, "that kernels are timed on (default: the last)")
      ->check(CLI::Range(0, 65'535))
      ->excludes(measure)  // its workers choose their own
      ->type_name("N");
  doctor
      .add_option("--root", flags->root,
                  "look at DIR/proc and DIR/sys instead: another machine's copy")
      ->excludes(measure)
      ->type_name("DIR");
}

}  // namespace loopfleet::client
