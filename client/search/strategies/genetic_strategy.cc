#include <algorithm>
#include <set>

#include "client/search/strategies/strategies.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kKept = 16;      // the quickest so far, which the next ones descend from
constexpr double kMostSlower = 1.5;    // than the best, by cost: while there are few, most are poor
constexpr std::size_t kMostSteps = 8;  // of a walk that has no parents

class Genetic : public Strategy {
 public:
  Genetic(SharedSpace space, std::uint64_t seed) : space_(std::move(space)), random_(seed) {}

  std::vector<Candidate> Propose(std::size_t most) override {
    std::vector<Candidate> next;
    for (std::size_t i = 0; i < most; ++i) next.push_back(Child());
    return next;
  }

  void Tell(std::span<const Evaluated> results) override {
    for (const Evaluated& one : results) {
      if (one.cost == kNoFigure || !keys_.insert(one.candidate.key).second) continue;
      kept_.insert(std::ranges::upper_bound(kept_, one.cost, {}, &Evaluated::cost), one);
      while (kept_.size() > kKept || kept_.back().cost > kMostSlower * kept_.front().cost) {
        keys_.erase(kept_.back().candidate.key);
        kept_.pop_back();
      }
    }
  }

 private:
  // Every eighth has no parents and every fifth has two, to keep the candidates diverse.
  Candidate Child() {
    if (kept_.empty() || random_.Below(8) == 0) return space_->RandomWalk(kMostSteps, random_);
    const Candidate& parent = Parent();
    if (random_.Below(5) != 0) return space_->Mutate(parent, random_);
    return space_->RandomStep(space_->Cross(parent, Parent(), random_), random_);
  }

  // The best of three: favours the quicker.
  const Candidate& Parent() {
    std::size_t best = kept_.size() - 1;
    for (int i = 0; i < 3; ++i) best = std::min<std::size_t>(best, random_.Below(kept_.size()));
    return kept_[best].candidate;
  }

  SharedSpace space_;
  SplitMix64 random_;
  std::vector<Evaluated> kept_;  // the quickest first
  std::set<looptree::TreeKey> keys_;
};

}  // namespace

std::unique_ptr<Strategy> MakeGenetic(SharedSpace space, std::uint64_t seed) {
  return std::make_unique<Genetic>(std::move(space), seed);
}

}  // namespace loopfleet::client
