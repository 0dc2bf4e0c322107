#pragma once
// Where an option's value comes from: flag > environment > TOML file > default. CLI11 reads the flags;
// this fills in what no flag gave. (CLI11's own file reader puts the file above the environment.)
//
//   CLI::App app; ... app.add_option("--listen-clients", options.listen_clients);
//   app.parse(argc, argv);
//   LF_TRY_VOID(ApplySettings(app, "coordinator", config_file));
//
// The environment variable of "--listen-clients" is LOOPFLEET_LISTEN_CLIENTS; its key in the file is
// "listen-clients" in the table [coordinator]. An unknown key in that table is an error that names
// the nearest valid one, with its line.

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace loopfleet {

// `app` has parsed its command line. Reads `file` where one is given. kInvalid: a bad value or key.
Status ApplySettings(CLI::App& app, std::string_view table, const std::optional<std::string>& file);

}  // namespace loopfleet
