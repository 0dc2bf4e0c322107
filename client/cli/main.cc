// `loopfleet`: the command. Data goes to standard output, messages to standard error.

#include "client/cli/command_line.h"

int main(int argc, char** argv) {
  using namespace loopfleet::client;
  CommandLine line;
  AddLocalCommand(line);
  AddWatchCommands(line);
  AddEvalCommand(line);
  AddExportCommand(line);
  AddSubmitCommand(line);
  AddBatchCommands(line);
  AddSearchCommand(line);
  AddBestCommand(line);
  AddTuneCommand(line);
  AddCampaignCommands(line);
  AddJobCommands(line);
  AddAuditCommand(line);
  AddWorkerCommands(line);
  AddFleetCommands(line);
  AddBenchmarkCommands(line);
  AddLlvmCommands(line);
  AddReplayCommand(line);
  AddKeygenCommand(line);
  AddDbCommands(line);
  AddDoctorCommand(line);
  AddCompletionCommands(line);
  return line.Execute(argc, argv);
}
