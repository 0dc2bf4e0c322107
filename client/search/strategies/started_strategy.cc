#include <algorithm>
#include <iterator>
#include <utility>

#include "client/search/strategies/strategies.h"

namespace loopfleet::client {
namespace {

class Started : public Strategy {
 public:
  Started(std::unique_ptr<Strategy> inner, std::vector<Candidate> first)
      : inner_(std::move(inner)), first_(std::move(first)) {}

  std::vector<Candidate> Propose(std::size_t most) override {
    if (first_.empty()) return inner_->Propose(most);
    const auto end = first_.begin() + static_cast<std::ptrdiff_t>(std::min(most, first_.size()));
    std::vector<Candidate> next(std::make_move_iterator(first_.begin()),
                                std::make_move_iterator(end));
    first_.erase(first_.begin(), end);
    return next;
  }
  void Tell(std::span<const Evaluated> results) override { inner_->Tell(results); }

 private:
  std::unique_ptr<Strategy> inner_;
  std::vector<Candidate> first_;  // not proposed yet
};

}  // namespace

std::unique_ptr<Strategy> MakeStarted(std::unique_ptr<Strategy> inner,
                                      std::vector<Candidate> first) {
  return std::make_unique<Started>(std::move(inner), std::move(first));
}

}  // namespace loopfleet::client
