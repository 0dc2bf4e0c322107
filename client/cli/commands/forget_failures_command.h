#pragma once
// `loopfleet db forget-failures`: failures that answer no equal job any more, so that their trees
// are run again.

#include "client/cli/command_line.h"

namespace loopfleet::client {

void AddForgetFailures(CommandLine& line, CLI::App& noun);

}  // namespace loopfleet::client
