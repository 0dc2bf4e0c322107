// `loopfleet`: the command. Data goes to standard output, talk to standard error.

#include "client/cli/command_line.h"

int main(int argc, char** argv) {
  using namespace loopfleet::client;
  CommandLine line;
  AddLocalCommand(line);
  AddEvalCommand(line);
  AddExportCommand(line);
  AddSubmitCommand(line);
  AddBatchCommands(line);
  AddJobCommands(line);
  AddWorkerCommands(line);
  AddBenchmarkCommands(line);
  AddReplayCommand(line);
  AddKeygenCommand(line);
  AddDbCommands(line);
  return line.Execute(argc, argv);
}
