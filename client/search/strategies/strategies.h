#pragma once
// The strategies, each in a file of its own. strategy_table.cc lists them by name.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "client/search/scorer.h"
#include "client/search/strategy.h"

namespace loopfleet::client {

std::unique_ptr<Strategy> MakeRandom(SharedSpace space, std::uint64_t seed);

// Moves to the quickest schedule within `depth` steps for as long as that is an improvement. Each
// level but the first is tried from the quickest `width` schedules of the level before.
struct Lookahead {
  std::size_t depth = 1;
  std::size_t width = 4;
};
std::unique_ptr<Strategy> MakeLookahead(SharedSpace space, const Lookahead& options);

// Tries all steps from the quickest `width` schedules of each level (kBreadth), or from the
// quickest `width` after each schedule, the best of them first (kDepth). Ends after `depth` steps.
struct Beam {
  enum class Order : std::uint8_t { kBreadth, kDepth };
  Order order = Order::kBreadth;
  std::size_t width = 4;
  std::size_t depth = 12;
};
std::unique_ptr<Strategy> MakeBeam(SharedSpace space, const Beam& options);

std::unique_ptr<Strategy> MakeHillClimbing(SharedSpace space, std::uint64_t seed);
std::unique_ptr<Strategy> MakeAnnealing(SharedSpace space, std::uint64_t seed);
std::unique_ptr<Strategy> MakeGenetic(SharedSpace space, std::uint64_t seed);
std::unique_ptr<Strategy> MakeTreeSearch(SharedSpace space, std::uint64_t seed);

// Lets `inner` propose many times as many candidates as are wanted, and passes on those that the
// scorer finds best, and a few others, without which it would learn nothing new. `inner` is told
// that the rest was not tried.
std::unique_ptr<Strategy> MakeGuided(std::unique_ptr<Strategy> inner,
                                     std::unique_ptr<Scorer> scorer, std::uint64_t seed);

// Proposes `first`, then what `inner` does, which is told their figures, too.
std::unique_ptr<Strategy> MakeStarted(std::unique_ptr<Strategy> inner,
                                      std::vector<Candidate> first);

}  // namespace loopfleet::client
