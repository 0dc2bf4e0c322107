#pragma once
// CommandLine: parses `loopfleet` NOUN [VERB] [FLAGS] and runs the command. Settings come from
// flags, then LOOPFLEET_* variables, then the table [client] of a TOML file.

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/wire/keys/key_directory.h"

namespace loopfleet::client {

// Settings of every command that talks to a coordinator.
struct ClientSettings {
  std::string address = "tcp://127.0.0.1:5570";
  bool is_address_named = false;       // by flag, environment or file; else it is the default
  std::string keys_dir;                // "": no keys
  std::optional<wire::PeerKeys> keys;  // from keys_dir, for commands that talk to a coordinator
  double timeout_s = 0;                // for the whole command; 0: no limit
};

// Checks an option's value: a finite number above 0.
CLI::Validator IsPositive();

struct CommandRun {
  ClientSettings settings;
  std::vector<std::string> after_dashes;  // arguments after "--"
};

struct CommandText {
  std::string name;
  std::string description;  // one line
  std::string examples;     // shown below the help
};

class CommandLine {
 public:
  using Run = std::function<int(const CommandRun&)>;
  enum class Talks { kToCoordinator, kOffline };

  CommandLine();

  CLI::App& root() { return app_; }
  // Adds a noun with verbs below it.
  CLI::App& AddNoun(const CommandText& text);
  // Adds a command below a noun or the root.
  CLI::App& AddCommand(CLI::App& parent, const CommandText& text, Talks talks, Run run);

  // Parses and runs; returns the exit code, which is never 0 if output could not be written.
  int Execute(int argc, const char* const* argv);

 private:
  struct Command {
    CLI::App* app;
    Talks talks;
    Run run;
  };
  int ParseAndRun(int argc, const char* const* argv);
  void AddSettings(CLI::App& app);
  Result<ClientSettings> ReadSettings(const CLI::App& command);
  int Complain(const CLI::ParseError& error);
  std::string Suggestion();
  CLI::App* ParsedLeaf();

  CLI::App app_;
  std::vector<Command> commands_;
  std::string address_;
  std::string keys_;
  std::string timeout_;
  std::string config_;
};

// The commands; one file per noun.
void AddAuditCommand(CommandLine& line);
void AddBatchCommands(CommandLine& line);
void AddBenchmarkCommands(CommandLine& line);
void AddBestCommand(CommandLine& line);
void AddCompletionCommands(CommandLine& line);
void AddCampaignCommands(CommandLine& line);
void AddDbCommands(CommandLine& line);
void AddDoctorCommand(CommandLine& line);
void AddEvalCommand(CommandLine& line);
void AddExportCommand(CommandLine& line);
void AddFleetCommands(CommandLine& line);
void AddJobCommands(CommandLine& line);
void AddKeygenCommand(CommandLine& line);
void AddLlvmCommands(CommandLine& line);
void AddLocalCommand(CommandLine& line);
void AddReplayCommand(CommandLine& line);
void AddSearchCommand(CommandLine& line);
void AddSubmitCommand(CommandLine& line);
void AddTuneCommand(CommandLine& line);
void AddWatchCommands(CommandLine& line);
void AddWorkerCommands(CommandLine& line);

}  // namespace loopfleet::client
