#pragma once
// Settings: an option's value comes from, in this order: flag, environment, TOML file, default.
// CLI11 reads the flags; ApplySettings fills in the rest. (CLI11's own file reader puts the file
// above the environment.)
//
//   CLI::App app; ... app.add_option("--listen-clients", options.listen_clients);
//   app.parse(argc, argv);
//   LF_TRY_VOID(ApplySettings(app, {.table = "coordinator",
//                                   .environment_prefix = "LOOPFLEET_COORDINATOR_",
//                                   .file = config_file}));
//
// Here the environment variable of "--listen-clients" is LOOPFLEET_COORDINATOR_LISTEN_CLIENTS, and
// its key in the file is "listen-clients" in the table [coordinator]. An unknown key in that table
// is an error that names its line and the nearest valid key.

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace loopfleet {

struct SettingsSource {
  std::string_view table;  // in the file
  // Each daemon has its own prefix, so that the variables `loopfleet local` sets for its command do
  // not reach the daemons.
  std::string_view environment_prefix;
  std::optional<std::string> file;
};

// `app` has parsed its command line. kInvalid: a bad value or key.
Status ApplySettings(CLI::App& app, const SettingsSource& source);

// A sentence for each variable of the environment that has this prefix and is no option's: likely a
// misspelt setting. It names the nearest option's variable. Variables that Kubernetes sets for a
// service of the daemon's name (..._SERVICE_HOST, ..._PORT_5570_TCP) are left out.
std::vector<std::string> UnknownVariables(const CLI::App& app, std::string_view prefix);

// The message for a command line that cannot be parsed: the wrong flag, the nearest valid one, and
// where to read more. Two lines.
std::string UsageText(const CLI::App& app, const CLI::ParseError& error);

}  // namespace loopfleet
