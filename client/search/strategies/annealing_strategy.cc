// Simulated annealing. The energy is log(time), so a temperature means the same for each benchmark.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "client/search/strategies/strategies.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kChains = 4;  // independent, so that a batch has several directions
constexpr double kHottest = 0.3;    // a schedule slower by 35 % is accepted once in e times
constexpr double kColdest = 0.005;  // reached after 400 figures; then the best is heated again
constexpr double kCooling = 0.99;   // for each figure of a chain

class Annealing : public Strategy {
 public:
  Annealing(SharedSpace space, std::uint64_t seed)
      : space_(std::move(space)), random_(seed), chains_(kChains) {}

  std::vector<Candidate> Propose(std::size_t most) override {
    std::vector<Candidate> next;
    for (std::size_t i = 0; i < most; ++i) {
      const std::size_t number = turn_++ % kChains;
      const Chain& chain = chains_[number];
      next.push_back(space_->Mutate(chain.here ? chain.here->candidate : space_->Start(), random_));
      chain_of_.emplace(next.back().key, number);
    }
    return next;
  }

  void Tell(std::span<const Evaluated> results) override {
    for (const Evaluated& one : results) {
      if (one.cost != kNoFigure && (!best_ || one.cost < best_->cost)) {
        best_ = one;
      }
      const auto found = chain_of_.find(one.candidate.key);
      if (found == chain_of_.end()) continue;  // the start
      if (one.is_tried) Advance(chains_[found->second], one);
      chain_of_.erase(found);
    }
  }

 private:
  struct Chain {
    std::optional<Evaluated> here;
    double temperature = kHottest;
  };

  void Advance(Chain& chain, const Evaluated& next) {
    chain.temperature *= kCooling;
    if (chain.temperature < kColdest) chain = {.here = best_, .temperature = kHottest / 3};
    if (next.cost == kNoFigure) return;
    const double worse = chain.here ? std::log(next.cost / chain.here->cost) : 0;
    const double chance = static_cast<double>(random_.Next() >> 11) * 0x1p-53;
    if (worse <= 0 || chance < std::exp(-worse / chain.temperature)) chain.here = next;
  }

  SharedSpace space_;
  SplitMix64 random_;
  std::vector<Chain> chains_;
  std::size_t turn_ = 0;
  std::multimap<looptree::TreeKey, std::size_t> chain_of_;  // of what has no figure yet
  std::optional<Evaluated> best_;
};

}  // namespace

std::unique_ptr<Strategy> MakeAnnealing(SharedSpace space, std::uint64_t seed) {
  return std::make_unique<Annealing>(std::move(space), seed);
}

}  // namespace loopfleet::client
