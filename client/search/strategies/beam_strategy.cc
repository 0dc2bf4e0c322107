#include <set>

#include "client/search/strategies/strategies.h"
#include "client/search/strategies/wave.h"

namespace loopfleet::client {
namespace {

class BeamStrategy : public Strategy {
 public:
  BeamStrategy(SharedSpace space, const Beam& options)
      : space_(std::move(space)), options_(options) {}

  std::vector<Candidate> Propose(std::size_t most) override {
    std::vector<Candidate> next = wave_.Take(most);
    while (next.empty() && wave_.is_over()) {
      Keep(wave_.Finish(options_.width));
      if (open_.empty()) break;
      Expand();
      next = wave_.Take(most);
    }
    return next;
  }

  void Tell(std::span<const Evaluated> results) override {
    if (has_start_) {
      wave_.Tell(results);
      return;
    }
    has_start_ = true;
    expanded_.insert(results.front().candidate.key);
    open_.push_back(results.front().candidate);
  }

 private:
  // The last in open_ is expanded next: so the quickest is put there last.
  void Keep(std::vector<Evaluated> quickest) {
    for (auto one = quickest.rbegin(); one != quickest.rend(); ++one) {
      const bool is_deep = one->candidate.length() >= options_.depth;
      if (!is_deep && expanded_.insert(one->candidate.key).second) {
        open_.push_back(std::move(one->candidate));
      }
    }
  }

  void Expand() {
    do {
      wave_.Add(space_->Neighbours(open_.back()));
      open_.pop_back();
    } while (options_.order == Beam::Order::kBreadth && !open_.empty());
  }

  SharedSpace space_;
  Beam options_;
  Wave wave_;
  std::vector<Candidate> open_;  // to be expanded
  std::set<looptree::TreeKey> expanded_;
  bool has_start_ = false;
};

}  // namespace

std::unique_ptr<Strategy> MakeBeam(SharedSpace space, const Beam& options) {
  return std::make_unique<BeamStrategy>(std::move(space), options);
}

}  // namespace loopfleet::client
