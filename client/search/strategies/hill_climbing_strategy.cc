#include <map>
#include <optional>

#include "client/search/strategies/strategies.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kPatience = 200;  // figures without an improvement before it starts elsewhere
constexpr std::size_t kMostSteps = 8;   // of the walk to there

class HillClimbing : public Strategy {
 public:
  HillClimbing(SharedSpace space, std::uint64_t seed) : space_(std::move(space)), random_(seed) {}

  std::vector<Candidate> Propose(std::size_t most) override {
    std::vector<Candidate> next;
    for (std::size_t i = 0; i < most; ++i) {
      next.push_back(here_ && told_ > 1 ? space_->Mutate(here_->candidate, random_)
                                        : space_->RandomWalk(kMostSteps, random_));
      climb_of_[next.back().key] = climb_;
    }
    return next;
  }

  void Tell(std::span<const Evaluated> results) override {
    for (const Evaluated& one : results) {
      if (!one.is_tried) continue;
      // Proposals from before the last restart would lead back to where it was.
      const auto climb = climb_of_.find(one.candidate.key);
      if (climb != climb_of_.end() && climb->second != climb_) continue;
      ++told_;
      ++failures_;
      if (one.cost == kNoFigure) continue;
      if (!here_ || one.cost < here_->cost) {
        here_ = one;
        failures_ = 0;
      }
    }
    if (failures_ >= kPatience) {
      here_.reset();
      ++climb_;
      failures_ = 0;
    }
  }

 private:
  SharedSpace space_;
  SplitMix64 random_;
  std::optional<Evaluated> here_;
  std::size_t told_ = 0;                               // 1: only the start's
  std::map<looptree::TreeKey, std::size_t> climb_of_;  // of what it proposed last
  std::size_t climb_ = 0;                              // one more after each restart
  std::size_t failures_ = 0;                           // since here_ was last improved
};

}  // namespace

std::unique_ptr<Strategy> MakeHillClimbing(SharedSpace space, std::uint64_t seed) {
  return std::make_unique<HillClimbing>(std::move(space), seed);
}

}  // namespace loopfleet::client
