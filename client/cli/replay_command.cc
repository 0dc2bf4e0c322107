#include <iostream>

#include "client/cli/command_line.h"
#include "client/cli/replay.h"

namespace loopfleet::client {

void AddReplayCommand(CommandLine& line) {
  line.AddCommand(
      line.root(),
      {.name = "replay",
       .description = "Apply actions without a cluster: JSON lines in, JSON lines out",
       .examples =
           "echo '{\"uri\": \"benchmark://mm-v0/mm64_64_64\", \"actions\": [\"split_16\"]}' \\\n"
           "  | loopfleet replay"},
      CommandLine::Talks::kToNobody,
      [](const CommandRun&) { return RunReplay(std::cin, std::cout); });
}

}  // namespace loopfleet::client
