// `loopfleet tune`: the schedule editor of the Python package (docs/EDITOR.md).

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/python_process.h"
#include "common/job/job_spec.h"

namespace loopfleet::client {
namespace {

struct TuneFlags {
  std::string benchmark;
  std::string ir;
  std::string schedule;
  std::string c;
  std::uint32_t threads = 1;
};

int RunTune(const TuneFlags& flags, const ClientSettings& settings) {
  std::vector<std::string> arguments = {"--threads", fmt::format("{}", flags.threads)};
  const auto pass = [&](const char* name, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {name, value});
  };
  pass("--ir", flags.ir);
  pass("--schedule", flags.schedule);
  pass("--c", flags.c);
  // Without one, figures are of this machine alone.
  if (settings.is_address_named) pass("--address", settings.address);
  if (!settings.keys_dir.empty()) ::setenv("LOOPFLEET_KEYS", settings.keys_dir.c_str(), 1);
  if (!flags.benchmark.empty()) arguments.push_back(flags.benchmark);
  return BecomePython(
      {.subject = "schedules that are edited", .module = "loopfleet.tui.__main__", .extra = "tui"},
      std::move(arguments));
}

}  // namespace

void AddTuneCommand(CommandLine& line) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App& app = line.AddCommand(
      line.root(),
      {.name = "tune",
       .description = "Edit a schedule by keys, with its figures and code beside it "
                      "(docs/EDITOR.md). Without an address, figures are this machine's alone",
       .examples = "loopfleet tune benchmark://program-v0/positive_product33_48_64\n"
                   "loopfleet tune benchmark://mm-v0/mm64_64_64 --c kernel.c --schedule "
                   "schedules.jsonl\n"
                   "loopfleet local -- loopfleet tune benchmark://mm-v0/mm64_64_64"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunTune(*flags, run.settings); });
  app.get_option("--address")
      ->description(
          "the coordinator's endpoint for clients (default: none, figures are this machine's "
          "alone)");
  app.add_option("benchmark", flags->benchmark, "a benchmark's URI")->type_name("BENCHMARK");
  app.add_option("--ir", flags->ir, "a file with a program's IR text, instead of a benchmark")
      ->type_name("FILE");
  app.add_option("--schedule", flags->schedule,
                 "a file of schedules: begins with the one of this program, and W writes to it")
      ->type_name("FILE");
  app.add_option("--c", flags->c, "where to keep the C text of the schedule as it is")
      ->type_name("FILE");
  app.add_option("--threads", flags->threads,
                 "threads that parallel loops are split over (default 1)")
      ->check(CLI::Range(1U, kMostThreads))
      ->type_name("N");
}

}  // namespace loopfleet::client
