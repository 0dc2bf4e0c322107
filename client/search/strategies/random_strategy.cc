// Uniform walks: what every other strategy has to beat.

#include "client/search/strategies/strategies.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kMostSteps = 10;  // as many as an episode of LoopTune has actions

class RandomStrategy : public Strategy {
 public:
  RandomStrategy(SharedSpace space, std::uint64_t seed) : space_(std::move(space)), random_(seed) {}

  std::vector<Candidate> Propose(std::size_t most) override {
    std::vector<Candidate> walks;
    for (std::size_t i = 0; i < most; ++i) {
      walks.push_back(space_->RandomWalk(kMostSteps, random_));
    }
    return walks;
  }
  void Tell(std::span<const Evaluated>) override {}

 private:
  SharedSpace space_;
  SplitMix64 random_;
};

}  // namespace

std::unique_ptr<Strategy> MakeRandom(SharedSpace space, std::uint64_t seed) {
  return std::make_unique<RandomStrategy>(std::move(space), seed);
}

}  // namespace loopfleet::client
