#pragma once
// The strategies by name, as commands and Python know them.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "client/search/strategy.h"
#include "common/base/result.h"

namespace loopfleet::client {

struct StrategyInfo {
  std::string_view name;
  std::string_view description;  // one line
  std::unique_ptr<Strategy> (*make)(SharedSpace space, std::uint64_t seed);
  bool is_for_loops_only = false;  // it looks at the loops, so it cannot search over passes
};

// What docs/SEARCH.md recommends.
inline constexpr std::string_view kAuto = "auto";
std::span<const StrategyInfo> Strategies();
// kInvalid, with the nearest name. kAuto is a name, too.
Result<const StrategyInfo*> FindStrategy(std::string_view name);

}  // namespace loopfleet::client
