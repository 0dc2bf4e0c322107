// `loopfleet campaign`: runs the campaigns of the Python package (docs/PYTHON.md).

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"

namespace loopfleet::client {
namespace {

struct CampaignFlags {
  std::string specification;
  std::string folder;
};

// Exit code 78: kExitBadConfig.
constexpr const char* kProgram = R"(
import importlib.util, sys
if importlib.util.find_spec("loopfleet") is None:
    print(f"loopfleet: campaigns need the Python package 'loopfleet', which {sys.executable} does not have: "
          "`pip install '.[dataset]'` in the repository installs it; LOOPFLEET_PYTHON names another interpreter", file=sys.stderr)
    sys.exit(78)
from loopfleet.campaign import main
sys.exit(main(sys.argv[1:]))
)";

// Replaces this process by Python, so signals and the exit code are Python's.
int Become(const std::string& verb, const CampaignFlags& flags, const ClientSettings& settings) {
  const char* named = std::getenv("LOOPFLEET_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  std::vector<std::string> arguments = {python, "-c", kProgram, verb, flags.specification};
  if (!flags.folder.empty()) arguments.insert(arguments.end(), {"--out", flags.folder});
  if (verb == "run") arguments.insert(arguments.end(), {"--address", settings.address});
  if (verb == "run" && settings.timeout_s > 0) {
    arguments.insert(arguments.end(), {"--timeout", fmt::format("{}", settings.timeout_s)});
  }
  if (!settings.keys_dir.empty()) ::setenv("LOOPFLEET_KEYS", settings.keys_dir.c_str(), 1);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execvp(python.c_str(), pointers.data());
  fmt::print(stderr,
             "loopfleet: campaigns are run by the Python package, and '{}' cannot be started: {}; "
             "LOOPFLEET_PYTHON names another interpreter\n",
             python, std::strerror(errno));
  return kExitBadConfig;
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
