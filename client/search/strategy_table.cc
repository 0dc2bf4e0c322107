#include "client/search/strategy_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "client/search/strategies/strategies.h"
#include "common/base/suggestion.h"

namespace loopfleet::client {
namespace {

constexpr std::string_view kRecommended = "genetic";

constexpr std::array<StrategyInfo, 10> kStrategies = {{
    {"random", "random walks: the baseline",
     [](SharedSpace space, std::uint64_t seed) { return MakeRandom(std::move(space), seed); }},
    {"greedy", "the best single step, for as long as it is an improvement",
     [](SharedSpace space, std::uint64_t) {
       return MakeLookahead(std::move(space), {.depth = 1, .width = 1});
     }},
    {"lookahead", "the best of up to three steps, for as long as it is an improvement",
     [](SharedSpace space, std::uint64_t) {
       return MakeLookahead(std::move(space), {.depth = 3, .width = 4});
     }},
    {"beam_breadth", "(or beam) all steps from the best four schedules, level by level",
     [](SharedSpace space, std::uint64_t) {
       return MakeBeam(std::move(space), {.order = Beam::Order::kBreadth});
     }},
    {"beam_depth", "all steps from the best schedule, down to the last level and back",
     [](SharedSpace space, std::uint64_t) {
       return MakeBeam(std::move(space), {.order = Beam::Order::kDepth});
     }},
    {"hill_climbing", "keeps random improvements; restarts elsewhere when stuck",
     [](SharedSpace space, std::uint64_t seed) {
       return MakeHillClimbing(std::move(space), seed);
     }},
    {"annealing", "simulated annealing: accepts slower schedules early on",
     [](SharedSpace space, std::uint64_t seed) { return MakeAnnealing(std::move(space), seed); }},
    {"genetic", "changes and crossings of the best schedules so far",
     [](SharedSpace space, std::uint64_t seed) { return MakeGenetic(std::move(space), seed); }},
    {"mcts", "Monte Carlo tree search over the steps",
     [](SharedSpace space, std::uint64_t seed) { return MakeTreeSearch(std::move(space), seed); }},
    {"guided", "genetic, with a linear model that learns which candidates are worth measuring",
     [](SharedSpace space, std::uint64_t seed) {
       return MakeGuided(MakeGenetic(std::move(space), seed), MakeLinearScorer(), seed);
     },
     /*is_for_loops_only=*/true},
}};

}  // namespace

std::span<const StrategyInfo> Strategies() { return kStrategies; }

Result<const StrategyInfo*> FindStrategy(std::string_view name) {
  const std::string_view wanted = name == kAuto    ? kRecommended
                                  : name == "beam" ? std::string_view("beam_breadth")
                                                   : name;
  const auto* const found = std::ranges::find(kStrategies, wanted, &StrategyInfo::name);
  if (found != kStrategies.end()) return found;
  std::vector<std::string_view> names = {kAuto};
  for (const StrategyInfo& one : kStrategies) names.push_back(one.name);
  return Fail(ErrorKind::kInvalid, fmt::format("unknown strategy '{}'{}; valid: {}", name,
                                               NearestSuffix(name, names), fmt::join(names, ", ")));
}

}  // namespace loopfleet::client
