#pragma once
// `loopfleet db prune`: removes old batches from a database file.

#include "client/cli/command_line.h"

namespace loopfleet::client {

void AddPrune(CommandLine& line, CLI::App& noun);

}  // namespace loopfleet::client
