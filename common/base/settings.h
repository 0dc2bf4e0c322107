#pragma once
// Where an option's value comes from: flag > environment > TOML file > default. CLI11 reads the
// flags; this fills in what no flag gave. (CLI11's own file reader puts the file above the
// environment.)
//
//   CLI::App app; ... app.add_option("--listen-clients", options.listen_clients);
//   app.parse(argc, argv);
//   LF_TRY_VOID(ApplySettings(app, {.table = "coordinator",
//                                   .environment_prefix = "LOOPFLEET_COORDINATOR_",
//                                   .file = config_file}));
//
// The environment variable of "--listen-clients" is LOOPFLEET_COORDINATOR_LISTEN_CLIENTS then; its
// key in the file is "listen-clients" in the table [coordinator]. An unknown key in that table is
// an error that names the nearest valid one, with its line.

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace loopfleet {

struct SettingsSource {
  std::string_view table;  // of the file
  std::string_view
      environment_prefix;  // of the variables; daemons have one each, so that what
                           // `loopfleet local` sets for its command does not reach them
  std::optional<std::string> file;
};

// `app` has parsed its command line. kInvalid: a bad value or key.
Status ApplySettings(CLI::App& app, const SettingsSource& source);

// What a daemon says to a command line that it cannot parse: the flag at fault, the nearest one it
// has, and where to read more. Two lines.
std::string UsageText(const CLI::App& app, const CLI::ParseError& error);

}  // namespace loopfleet
