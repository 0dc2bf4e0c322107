#pragma once
// Names of the log levels.

#include <optional>
#include <string_view>

#include "common/base/log.h"

namespace loopfleet::log {

// "debug", "info", "warning", "error"; nullopt for anything else.
std::optional<Level> ParseLevel(std::string_view name);

}  // namespace loopfleet::log
