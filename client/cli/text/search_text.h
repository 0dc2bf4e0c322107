#pragma once
// What a search found, as text and as JSON.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/confirmation.h"
#include "client/outcome_json.h"
#include "client/search/search.h"

namespace loopfleet::client {

struct SearchReport {
  const Search::Lane& lane;
  std::string strategy;
  std::uint64_t seed = 0;
  double seconds = 0;                       // of the whole search
  Nanos proposing{0};                       // of it, by the strategies
  const std::vector<Confirmed>& confirmed;  // of all lanes; empty: not measured again
};

// How the search went, the best schedule's figure and tree, and the command that measures it again.
std::string SearchText(const SearchReport& report);
// {"benchmark", "strategy", "seed", "evaluations", "without_figure", "seconds",
// "proposing_seconds", "is_exhausted", "untuned", "best", "speed_up", "curve", "confirmed"}; null
// where there is no figure. For a program: {"benchmark", "strategy", "seed", "evaluations",
// "without_figure", "seconds", "is_exhausted", "instructions", "instructions_oz", "best", "curve"}.
Json SearchJson(const SearchReport& report);
// One line for all lanes.
std::string SearchProgressText(const Search& search);

}  // namespace loopfleet::client
