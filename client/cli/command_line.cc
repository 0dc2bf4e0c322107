#include "client/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>
#include <system_error>

#include "client/cli/exit_code.h"
#include "common/base/settings.h"
#include "common/base/suggestion.h"

namespace loopfleet::client {
namespace {

constexpr const char* kFooter =
    "Settings: flags, then the environment (LOOPFLEET_ADDRESS, LOOPFLEET_KEYS, "
    "LOOPFLEET_TIMEOUT,\n"
    "LOOPFLEET_CONFIG), then the table [client] of the configuration file.\n"
    "Exit codes: 0 ok, 1 jobs failed or lines were bad, 2 usage, 69 coordinator unreachable,\n"
    "75 timed out, 78 bad configuration, 130 interrupted.";

std::string Indented(const std::string& examples) {
  if (examples.empty()) return "";
  std::string text = "Examples:\n  ";
  for (const char c : examples) {
    text += c;
    if (c == '\n') text += "  ";
  }
  return text;
}

// Adds the long flags of a command, with their dashes.
void AddFlagNames(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
}

// The value of a flag of the command or of one of its parents; the last one given wins.
std::optional<std::string> Given(const CLI::App* app, const std::string& flag) {
  for (; app != nullptr; app = app->get_parent()) {
    const CLI::Option* option = app->get_option_no_throw(flag);
    if (option != nullptr && option->count() > 0) return option->results().back();
  }
  return std::nullopt;
}

// Flushes standard output and reports a failure on standard error. Output may still be buffered, so
// a full disk shows only here. Stream errors are sticky, so earlier failures count too.
bool OutputIsWritten() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return true;
  const int reason = errno;
  // Not fmt, which throws if this write fails too.
  std::fprintf(stderr, "loopfleet: the output could not be written%s%s\n", reason == 0 ? "" : ": ",
               reason == 0 ? "" : std::strerror(reason));
  return false;
}

}  // namespace

CLI::Validator IsPositive() {
  return {[](const std::string& text) -> std::string {
            double value = 0;  // "nan" is a number to CLI::PositiveNumber
            std::from_chars(text.data(), text.data() + text.size(), value);
            if (std::isfinite(value) && value > 0) return "";
            return fmt::format("must be a number above 0, not '{}'", text);
          },
          ""};
}

CommandLine::CommandLine()
    : app_("Measures how fast loop schedules run, on a fleet of CPUs and GPUs.", "loopfleet") {
  app_.require_subcommand(1);
  app_.set_version_flag("--version", "loopfleet " LOOPFLEET_VERSION);
  app_.footer(kFooter);
  app_.get_formatter()->column_width(34);
  AddSettings(app_);
}

void CommandLine::AddSettings(CLI::App& app) {
  app.add_option("--address", address_,
                 "the coordinator's endpoint for clients (default tcp://127.0.0.1:5570)")
      ->type_name("ENDPOINT");
  app.add_option("--keys", keys_,
                 "directory with this client's key and coordinator.key (default: no keys)")
      ->type_name("DIR");
  app.add_option("--timeout", timeout_, "give up after this long (default: never while it answers)")
      ->type_name("SECONDS");
  app.add_option("--config", config_, "a TOML file with settings")->type_name("FILE");
}

CLI::App& CommandLine::AddNoun(const CommandText& text) {
  CLI::App* noun = app_.add_subcommand(text.name, text.description);
  noun->require_subcommand(1);
  noun->footer(Indented(text.examples));
  return *noun;
}

CLI::App& CommandLine::AddCommand(CLI::App& parent, const CommandText& text, Talks talks, Run run) {
  CLI::App* command = parent.add_subcommand(text.name, text.description);
  command->footer(Indented(text.examples));
  if (talks == Talks::kToCoordinator) AddSettings(*command);
  commands_.push_back({command, talks, std::move(run)});
  return *command;
}

Result<ClientSettings> CommandLine::ReadSettings(const CLI::App& command) {
  ClientSettings settings;
  // Flags may come before or after the command; both take precedence over the environment and the
  // file.
  CLI::App merged;
  const CLI::Option* address = merged.add_option("--address", settings.address);
  merged.add_option("--keys", settings.keys_dir);
  merged.add_option("--timeout", settings.timeout_s)->check(IsPositive());
  std::vector<std::string> given;
  for (const char* flag : {"--address", "--keys", "--timeout"}) {
    if (auto value = Given(&command, flag)) given.push_back(fmt::format("{}={}", flag, *value));
  }
  std::reverse(given.begin(), given.end());  // as CLI11 wants it
  merged.parse(given);
  std::optional<std::string> file = Given(&command, "--config");
  if (const char* variable = std::getenv("LOOPFLEET_CONFIG");
      !file && variable != nullptr && *variable != '\0') {
    file = variable;
  }
  LF_TRY_VOID(
      ApplySettings(merged, {.table = "client", .environment_prefix = "LOOPFLEET_", .file = file}));
  settings.is_address_named = address->count() > 0;
  return settings;
}

CLI::App* CommandLine::ParsedLeaf() {
  CLI::App* leaf = &app_;
  while (!leaf->get_subcommands().empty()) leaf = leaf->get_subcommands().back();
  return leaf;
}

std::string CommandLine::Suggestion() {
  const std::vector<std::string> left = app_.remaining(/*recurse=*/true);
  if (left.empty()) return "";
  const CLI::App* leaf = ParsedLeaf();
  const bool is_flag = left.front().starts_with("-");
  std::vector<std::string> names;
  if (is_flag) {
    AddFlagNames(*leaf, names);
    if (leaf != &app_) AddFlagNames(app_, names);
  } else {
    for (const CLI::App* sub : leaf->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(sub->get_name());
    }
  }
  const std::string word = left.front().substr(0, left.front().find('='));
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return fmt::format("unknown {} '{}'{}",
                     is_flag         ? "flag"
                     : names.empty() ? "argument"
                                     : "command",
                     word, NearestSuffix(word, candidates));
}

int CommandLine::Complain(const CLI::ParseError& error) {
  const bool is_answer = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
  if (is_answer && app_.remaining(/*recurse=*/true).empty()) {
    return app_.exit(error);  // --help, --version
  }
  std::string command = "loopfleet";
  for (const CLI::App* app = &app_; !app->get_subcommands().empty();) {
    app = app->get_subcommands().back();
    command += " " + app->get_name();
  }
  const std::string suggestion = Suggestion();
  fmt::print(stderr, "loopfleet: {}\nSee `{} --help`.\n",
             suggestion.empty() ? error.what() : suggestion, command);
  return kExitUsage;
}

int CommandLine::Execute(int argc, const char* const* argv) {
  int code = kExitFailed;
  try {
    code = ParseAndRun(argc, argv);
  } catch (const std::system_error&) {
    // fmt throws when stdio cannot write; other errors are not handled here.
    if (std::ferror(stdout) == 0 && std::ferror(stderr) == 0) throw;
  }
  return OutputIsWritten() ? code : std::max<int>(code, kExitFailed);
}

int CommandLine::ParseAndRun(int argc, const char* const* argv) {
  CommandRun run;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes != arguments.end()) {
    run.after_dashes.assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
  }
  if (arguments.empty()) {
    fmt::print(stderr, "{}", app_.help());
    return kExitUsage;
  }
  if (arguments.front() == "help") {  // help COMMAND is COMMAND --help
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
  const CLI::App* leaf = nullptr;
  try {
    app_.parse(arguments);
    leaf = ParsedLeaf();
    if (!run.after_dashes.empty() && leaf->get_name() != "local") {
      throw CLI::ParseError(fmt::format("'{}' takes no command behind --", leaf->get_name()),
                            CLI::ExitCodes::ExtrasError);
    }
    auto settings = ReadSettings(*leaf);
    if (!settings) {
      fmt::print(stderr, "loopfleet: {}\n", settings.error().message);
      return kExitBadConfig;
    }
    run.settings = *std::move(settings);
  } catch (const CLI::ParseError& error) {
    return Complain(error);
  }
  const auto command = std::ranges::find(commands_, leaf, &Command::app);
  if (command->talks == Talks::kToCoordinator && !run.settings.keys_dir.empty()) {
    constexpr std::array kRoles = {wire::Role::kClient, wire::Role::kAdmin};
    auto keys = wire::LoadPeerKeys(run.settings.keys_dir, kRoles);
    if (!keys) {
      fmt::print(stderr, "loopfleet: --keys: {}\n", keys.error().message);
      return kExitBadConfig;
    }
    run.settings.keys = *std::move(keys);
  }
  return command->run(run);
}

}  // namespace loopfleet::client
