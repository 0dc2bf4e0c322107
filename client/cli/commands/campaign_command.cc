// `loopfleet campaign`: runs the campaigns of the Python package (docs/PYTHON.md).

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/python_process.h"

namespace loopfleet::client {
namespace {

struct CampaignFlags {
  std::string specification;
  std::string folder;
};

int Become(const std::string& verb, const CampaignFlags& flags, const ClientSettings& settings) {
  std::vector<std::string> arguments = {verb, flags.specification};
  if (!flags.folder.empty()) arguments.insert(arguments.end(), {"--out", flags.folder});
  if (verb == "run") arguments.insert(arguments.end(), {"--address", settings.address});
  if (verb == "run" && settings.timeout_s > 0) {
    arguments.insert(arguments.end(), {"--timeout", fmt::format("{}", settings.timeout_s)});
  }
  if (!settings.keys_dir.empty()) ::setenv("LOOPFLEET_KEYS", settings.keys_dir.c_str(), 1);
  return BecomePython(
      {.subject = "campaigns", .module = "loopfleet.campaign.__main__", .extra = "dataset"},
      std::move(arguments));
}

void AddVerb(CommandLine& line, CLI::App& noun, const CommandText& text, CommandLine::Talks talks) {
  auto flags = std::make_shared<CampaignFlags>();
  CLI::App& app =
      line.AddCommand(noun, text, talks, [flags, verb = text.name](const CommandRun& run) {
        return Become(verb, *flags, run.settings);
      });
  app.add_option("SPEC", flags->specification, "a TOML file; docs/PYTHON.md lists its keys")
      ->required();
  app.add_option("--out", flags->folder,
                 "where it keeps its answers (default: its name, beside SPEC)")
      ->type_name("FOLDER");
}

}  // namespace

void AddCampaignCommands(CommandLine& line) {
  CLI::App& noun = line.AddNoun({.name = "campaign",
                                 .description = "Measure points of a distribution of schedules",
                                 .examples = "loopfleet campaign run matmuls.toml"});
  AddVerb(line, noun,
          {.name = "run",
           .description = "Ask for every point that has no answer yet",
           .examples = "loopfleet campaign run matmuls.toml\n"
                       "loopfleet campaign run matmuls.toml --out /data/matmuls"},
          CommandLine::Talks::kToCoordinator);
  AddVerb(line, noun,
          {.name = "show",
           .description = "Show campaign progress",
           .examples = "loopfleet campaign show matmuls.toml"},
          CommandLine::Talks::kOffline);
}

}  // namespace loopfleet::client
