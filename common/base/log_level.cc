#include "common/base/log_level.h"

namespace loopfleet::log {

std::optional<Level> ParseLevel(std::string_view name) {
  if (name == "debug") return Level::kDebug;
  if (name == "info") return Level::kInfo;
  if (name == "warning") return Level::kWarning;
  if (name == "error") return Level::kError;
  return std::nullopt;
}

}  // namespace loopfleet::log
