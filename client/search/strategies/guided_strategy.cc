#include <algorithm>
#include <numeric>
#include <utility>

#include "client/search/strategies/strategies.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kProposals = 8;  // for each candidate that is wanted
constexpr std::size_t kOneIn = 5;      // passed on whatever its score

class Guided : public Strategy {
 public:
  Guided(std::unique_ptr<Strategy> inner, std::unique_ptr<Scorer> scorer, std::uint64_t seed)
      : inner_(std::move(inner)), scorer_(std::move(scorer)), random_(seed) {}

  std::vector<Candidate> Propose(std::size_t most) override {
    std::vector<Candidate> proposed = inner_->Propose(most * kProposals);
    if (proposed.size() <= most) return proposed;
    const std::vector<double> scores = scorer_->Score(proposed);
    std::vector<std::size_t> order(proposed.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return scores[i]; });
    // The last of the chosen are drawn from all the others.
    for (std::size_t i = most - most / kOneIn; i < most; ++i) {
      std::swap(order[i], order[i + random_.Below(order.size() - i)]);
    }
    std::vector<Candidate> chosen;
    std::vector<Evaluated> passed_over;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Candidate& one = proposed[order[i]];
      if (i < most) {
        chosen.push_back(std::move(one));
      } else {
        passed_over.push_back({.candidate = std::move(one), .is_tried = false});
      }
    }
    inner_->Tell(passed_over);
    return chosen;
  }

  void Tell(std::span<const Evaluated> results) override {
    scorer_->Learn(results);
    inner_->Tell(results);
  }

 private:
  std::unique_ptr<Strategy> inner_;
  std::unique_ptr<Scorer> scorer_;
  SplitMix64 random_;
};

}  // namespace

std::unique_ptr<Strategy> MakeGuided(std::unique_ptr<Strategy> inner,
                                     std::unique_ptr<Scorer> scorer, std::uint64_t seed) {
  return std::make_unique<Guided>(std::move(inner), std::move(scorer), seed);
}

}  // namespace loopfleet::client
