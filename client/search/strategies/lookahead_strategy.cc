#include <optional>

#include "client/search/strategies/strategies.h"
#include "client/search/strategies/wave.h"

namespace loopfleet::client {
namespace {

class LookaheadStrategy : public Strategy {
 public:
  LookaheadStrategy(SharedSpace space, const Lookahead& options)
      : space_(std::move(space)), options_(options) {}

  std::vector<Candidate> Propose(std::size_t most) override {
    std::vector<Candidate> next = wave_.Take(most);
    while (next.empty() && here_cost_ && wave_.is_over() && !is_over_) {
      Advance();
      next = wave_.Take(most);
    }
    return next;
  }

  void Tell(std::span<const Evaluated> results) override {
    for (const Evaluated& one : results) {
      if (!best_ || one.cost < best_->cost) best_ = one;
    }
    if (here_cost_) {
      wave_.Tell(results);
    } else {
      here_cost_ = best_->cost;  // the start
      wave_.Add(space_->Neighbours(best_->candidate));
    }
  }

 private:
  // All figures of a level are in: looks one level further, or moves, or ends.
  void Advance() {
    const std::vector<Evaluated> quickest = wave_.Finish(options_.width);
    if (++level_ < options_.depth && !quickest.empty()) {
      for (const Evaluated& one : quickest) wave_.Add(space_->Neighbours(one.candidate));
      return;
    }
    is_over_ = best_->cost >= *here_cost_;
    level_ = 0;
    here_cost_ = best_->cost;
    if (!is_over_) wave_.Add(space_->Neighbours(best_->candidate));
  }

  SharedSpace space_;
  Lookahead options_;
  Wave wave_;              // the level that is being tried
  std::size_t level_ = 0;  // levels finished
  // Of the schedule that the levels start from; none: not told yet.
  std::optional<double> here_cost_;
  std::optional<Evaluated> best_;
  bool is_over_ = false;
};

}  // namespace

std::unique_ptr<Strategy> MakeLookahead(SharedSpace space, const Lookahead& options) {
  return std::make_unique<LookaheadStrategy>(std::move(space), options);
}

}  // namespace loopfleet::client
