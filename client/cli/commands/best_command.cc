#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <cstdio>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/program_file.h"
#include "client/cli/text/outcome_text.h"
#include "client/cli/text/table.h"
#include "client/job_line.h"
#include "client/outcome_json.h"
#include "common/base/counted.h"
#include "common/base/enum_names.h"
#include "common/base/printable.h"
#include "common/looptree/actions/action.h"
#include "common/wire/bounds.h"

namespace loopfleet::client {
namespace {

struct BestFlags {
  std::string benchmark;
  std::string ir_file;
  std::string hardware_class;
  std::uint32_t threads = 1;
  std::string cache = "warm";
  std::uint32_t limit = 1;
  bool json = false;
};

// The job whose program is meant. Uses the reader of `submit`, so that both read a benchmark alike.
std::expected<JobSpec, RejectedJob> JobOf(const BestFlags& flags, const std::string& program) {
  Json line = {{"actions", Json::array()}, {"threads", flags.threads}, {"cache", flags.cache}};
  if (flags.ir_file.empty()) {
    line["benchmark"] = flags.benchmark;
  } else {
    line["ir"] = program;
  }
  return ParseJobLine(Dump(line));
}

std::string ScheduleText(const JobSpec& spec) {
  if (!spec.actions.empty()) {
    return fmt::format("{}", fmt::join(looptree::ActionNames(spec.actions), ","));
  }
  return std::holds_alternative<looptree::IrText>(spec.source) ? "as its IR text says" : "untuned";
}

void PrintForPeople(const wire::JobList& found) {
  const wire::JobInfo& first = found.jobs.front();
  fmt::print("{}\n{}{}schedule: {}\n\n", Printable(SourceText(first.spec.source)),
             TreeOf(first.spec), client::FigureText(*first.outcome), ScheduleText(first.spec));
  Table table({"GFLOP/S", "GRADE", "JOB", "WORKER", "HARDWARE", "MEASURED"});
  for (const wire::JobInfo& info : found.jobs) {
    const Evaluation& evaluation = info.outcome->evaluation;
    const Measurement& measurement = evaluation.measurement();
    table.Add({fmt::format("{:.4g}", GflopPerSecond(evaluation.flop_count, measurement)),
               std::string(EnumName(measurement.grade)), fmt::format("{}", info.job), info.worker,
               evaluation.conditions->hardware.hardware_class,
               TimeText(info.outcome->finished_at)});
  }
  fmt::print("{}", table.Text());
}

void PrintJson(const wire::JobList& found) {
  Json array = Json::array();
  for (const wire::JobInfo& info : found.jobs) {
    array.push_back({{"job", fmt::format("{}", info.job)},
                     {"spec", Json::parse(JobLine(info.spec))},
                     {"outcome", OutcomeJson(*info.outcome)}});
  }
  fmt::print("{}\n", Dump(array));
}

int RunBest(const BestFlags& flags, const CommandRun& run) {
  if (flags.benchmark.empty() && flags.ir_file.empty()) {
    fmt::print(stderr, "loopfleet: name a BENCHMARK, or give --ir FILE\n");
    return kExitUsage;
  }
  Result<std::string> program;
  if (!flags.ir_file.empty()) program = ReadProgram(flags.ir_file);
  if (!program) {
    fmt::print(stderr, "loopfleet: {}\n", program.error().message);
    return kExitUsage;
  }
  auto job = JobOf(flags, *program);
  if (!job) {
    fmt::print(stderr, "loopfleet: {}\n", FailureText(job.error().failure));
    return kExitFailed;
  }
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto found = client->FindBest(
      {.job = *std::move(job), .hardware_class = flags.hardware_class, .max_jobs = flags.limit});
  if (!found) return Report(found.error());
  if (flags.json) {
    PrintJson(*found);
  } else if (!found->jobs.empty()) {
    PrintForPeople(*found);
  } else {
    fmt::print(
        stderr,
        "loopfleet: no schedule of it is known here, measured with {} and a {} cache{}; "
        "`loopfleet search` looks for one\n",
        Counted(flags.threads, "thread", "threads"), flags.cache,
        flags.hardware_class.empty() ? "" : fmt::format(" by class '{}'", flags.hardware_class));
  }
  return found->jobs.empty() ? kExitFailed : kExitOk;
}

}  // namespace

void AddBestCommand(CommandLine& line) {
  const auto flags = std::make_shared<BestFlags>();
  CLI::App& best = line.AddCommand(
      line.root(),
      {.name = "best",
       .description = "The fastest schedules of a benchmark that the fleet has measured",
       .examples = "loopfleet best mm-v0/mm64_64_64\n"
                   "loopfleet best mm-v0/mm64_64_64 --limit 5 --json\n"
                   "loopfleet best --ir program.ir --threads 4"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunBest(*flags, run); });
  auto* benchmark =
      best.add_option("benchmark", flags->benchmark, "its URI")->type_name("BENCHMARK");
  best.add_option("--ir", flags->ir_file, "a program as IR text; its loops do not matter")
      ->type_name("FILE")
      ->check(CLI::ExistingFile)
      ->excludes(benchmark);
  best.add_option("--threads", flags->threads, "measured with so many threads (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  best.add_option("--cache", flags->cache, "measured with this cache: warm (default) or cold")
      ->type_name("STATE");
  best.add_option("--hardware-class", flags->hardware_class,
                  "measured by workers of this class (default: any)")
      ->type_name("CLASS");
  best.add_option("--limit", flags->limit,
                  fmt::format("at most so many, the fastest first (default 1, at most {})",
                              wire::kMaxBestJobs))
      ->type_name("N")
      ->check(CLI::Range(std::uint32_t{1}, wire::kMaxBestJobs));
  best.add_flag("--json", flags->json, "print one JSON array");
}

}  // namespace loopfleet::client
