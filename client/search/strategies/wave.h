#pragma once
// Wave: candidates whose figures a strategy needs, all of them, before its next decision.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "client/search/candidate.h"

namespace loopfleet::client {

class Wave {
 public:
  void Add(std::vector<Candidate> candidates) {
    std::ranges::move(candidates, std::back_inserter(waiting_));
  }
  // The next ones to propose, at most `most`.
  std::vector<Candidate> Take(std::size_t most) {
    const std::size_t end = std::min(waiting_.size(), taken_ + most);
    std::vector<Candidate> next;
    for (; taken_ < end; ++taken_) next.push_back(std::move(waiting_[taken_]));
    return next;
  }
  void Tell(std::span<const Evaluated> results) {
    results_.insert(results_.end(), results.begin(), results.end());
  }
  // Every figure is there.
  bool is_over() const { return results_.size() >= waiting_.size(); }
  // Those with a figure, the quickest first, at most `most`. The wave is empty afterwards.
  std::vector<Evaluated> Finish(std::size_t most) {
    std::erase_if(results_, [](const Evaluated& one) { return one.cost == kNoFigure; });
    // Equal figures in a fixed order, so that a search is repeatable.
    std::ranges::sort(results_, [](const Evaluated& a, const Evaluated& b) {
      return std::pair(a.cost, a.candidate.key) < std::pair(b.cost, b.candidate.key);
    });
    if (results_.size() > most) {
      results_.erase(results_.begin() + static_cast<std::ptrdiff_t>(most), results_.end());
    }
    waiting_.clear();
    taken_ = 0;
    return std::exchange(results_, {});
  }

 private:
  std::vector<Candidate> waiting_;  // moved from once taken
  std::size_t taken_ = 0;
  std::vector<Evaluated> results_;
};

}  // namespace loopfleet::client
