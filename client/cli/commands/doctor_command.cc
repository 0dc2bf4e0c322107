// `loopfleet doctor`: finds settings of this machine that spoil measurements, and how to fix them.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"
#include "client/outcome_json.h"
#include "monitoring/host/core_plan.h"
#include "monitoring/host/host_inspection.h"

namespace loopfleet::client {
namespace {

using monitoring::Finding;
using monitoring::Severity;

struct DoctorFlags {
  bool json = false;
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

int RunDoctor(const DoctorFlags& flags) {
  monitoring::InspectionOptions options;
  if (flags.core >= 0) options.core = flags.core;
  if (flags.root.empty()) {  // the processors that a worker started here would have
    if (auto allowed = monitoring::AllowedProcessors()) options.processors = *std::move(allowed);
  }
  const monitoring::HostFiles files =
      flags.root.empty() ? monitoring::HostFiles()
                         : monitoring::HostFiles(flags.root + "/proc", flags.root + "/sys");
  const std::vector<Finding> findings = monitoring::InspectHost(files, options);
  std::size_t problems = 0;
  std::size_t notices = 0;
  Json array = Json::array();
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kProblem) ++problems;
    if (finding.severity == Severity::kNotice) ++notices;
    if (!flags.json) fmt::print("{}", FindingText(finding));
    array.push_back({{"check", finding.check},
                     {"severity", monitoring::NameOf(finding.severity)},
                     {"what", finding.what},
                     {"why", finding.why},
                     {"mend", finding.mend.empty() ? Json(nullptr) : Json(finding.mend)}});
  }
  if (flags.json) {
    fmt::print("{}\n", Dump(array));
  } else {
    fmt::print(
        "\n{} problem{}, {} note{}; commands behind $ are for root's shell, until the next boot\n",
        problems, problems == 1 ? "" : "s", notices, notices == 1 ? "" : "s");
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
       .examples = "loopfleet doctor\nloopfleet doctor --json | jq '.[] | select(.severity == "
                   "\"problem\")'"},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return RunDoctor(*flags); });
  doctor.add_flag("--json", flags->json, "print one JSON array");
  doctor.add_option("--core", flags->core, "that kernels are timed on (default: the last)")
      ->check(CLI::Range(0, 65'535))
      ->type_name("N");
  doctor
      .add_option("--root", flags->root,
                  "look at DIR/proc and DIR/sys instead: another machine's copy")
      ->type_name("DIR");
}

}  // namespace loopfleet::client
