#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "client/cli/command_line.h"
#include "client/cli/commands/replay.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/table.h"
#include "client/replay/observation.h"

namespace loopfleet::client {
namespace {

struct ReplayFlags {
  bool list_observations = false;
  bool json = false;
};

std::string_view DialectsText(const Observation& row) {
  switch (row.dialects) {
    case Observation::Dialects::kSimple: return "simple";
    case Observation::Dialects::kAgent: return "agent";
    case Observation::Dialects::kBoth: return "both";
  }
  return "";
}

std::string_view DefaultIn(const Observation& row) {
  const bool simple = row.IsDefault(looptree::Dialect::kSimple);
  const bool agent = row.IsDefault(looptree::Dialect::kAgent);
  if (simple && agent) return "both";
  return simple ? "simple" : agent ? "agent" : "-";
}

int ListObservations(const ReplayFlags& flags) {
  if (flags.json) {
    Json array = Json::array();
    for (const Observation& row : Observations()) {
      array.push_back({{"name", row.name},
                       {"dialect", DialectsText(row)},
                       {"default_in", DefaultIn(row) == "-" ? Json(nullptr) : Json(DefaultIn(row))},
                       {"type", row.type},
                       {"description", row.description}});
    }
    fmt::print("{}\n", Dump(array));
    return kExitOk;
  }
  Table table({"OBSERVATION", "DIALECT", "DEFAULT IN", "TYPE", "WHAT IT IS"});
  for (const Observation& row : Observations()) {
    table.Add({std::string(row.name), std::string(DialectsText(row)), std::string(DefaultIn(row)),
               std::string(row.type), std::string(row.description)});
  }
  fmt::print("{}", table.Text());
  return kExitOk;
}

int RunReplayCommand(const ReplayFlags& flags) {
  if (flags.list_observations) return ListObservations(flags);
  return RunReplay(std::cin, std::cout);
}

}  // namespace

void AddReplayCommand(CommandLine& line) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App& app = line.AddCommand(
      line.root(),
      {.name = "replay",
       .description =
           "Apply actions without a cluster: JSON lines in, JSON lines out. A line's benchmark "
           "is its \"uri\", or \"benchmark\" as in a job line",
       .examples =
           "echo '{\"uri\": \"benchmark://mm-v0/mm64_64_64\", \"actions\": [\"split_16\"]}' \\\n"
           "  | loopfleet replay\n"
           "echo '{\"uri\": \"benchmark://mm-v0/mm64_64_64\", \"actions\": [\"down\"], \\\n"
           "       \"observations\": [\"loops_tensor\"], \"max_loops\": 10}' | loopfleet replay\n"
           "loopfleet replay --list-observations"},
      CommandLine::Talks::kOffline,
      [flags](const CommandRun&) { return RunReplayCommand(*flags); });
  auto* list = app.add_flag("--list-observations", flags->list_observations,
                            "print the names that \"observations\" may have, and what they are");
  app.add_flag("--json", flags->json, "print that list as one JSON array")->needs(list);
}

}  // namespace loopfleet::client
