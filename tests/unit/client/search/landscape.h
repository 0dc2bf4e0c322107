#pragma once
// A made-up landscape: how long a tree takes, as a deterministic function of the tree, for searches
// without hardware.

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/search/evaluator.h"
#include "client/search/exploration.h"
#include "client/search/loop_space.h"
#include "client/search/strategy_table.h"

namespace loopfleet::client {

// Quickest with k in 16, m in 4 and n in 8 as the innermost loops. Each factor of two off costs 50
// ns, a loop of another dimension 400, and each loop 5: smooth, but five steps from the start.
inline double LandscapeNs(const looptree::LoopTree& tree) {
  struct Wanted {
    looptree::DimId dim;
    double bits;
  };
  constexpr std::array<Wanted, 3> kWanted = {{{2, 3}, {0, 2}, {1, 4}}};
  const auto nodes = tree.nodes();
  const auto deepest = std::ranges::max_element(nodes, {}, &looptree::TreeNode::depth);
  double ns = 1000;
  std::size_t place = 0;
  for (auto at = deepest->parent; at != looptree::kNoParent; at = nodes[at].parent, ++place) {
    ns += 5;
    if (place >= kWanted.size()) continue;
    const double bits = std::log2(static_cast<double>(nodes[at].size));
    const Wanted& wanted = kWanted[place];
    ns += nodes[at].dim == wanted.dim ? 50 * std::abs(bits - wanted.bits) : 400;
  }
  return ns;
}

// Answers from the landscape, and notes every tree that it is asked for.
class LandscapeEvaluator : public Evaluator {
 public:
  Answer<void> Send(std::span<const Trial> trials) override {
    std::vector<Outcome> outcomes;
    for (const Trial& trial : trials) {
      const Candidate& candidate = trial.candidate;
      asked.push_back(candidate.key);
      const double ns = LandscapeNs(candidate.tree);
      Outcome outcome{.job = {BatchId{1}, static_cast<std::uint32_t>(asked.size() - 1)},
                      .benchmark = trial.source,
                      .actions = candidate.actions};
      outcome.evaluation.verdict = Measurement{.elapsed_ns = ns, .grade = Grade::kA};
      if (trial.cut_above_ns > 0 && ns > trial.cut_above_ns) {
        outcome.evaluation.verdict = Failure{.code = FailureCode::kCut};
        ++cut;
      }
      outcome.evaluation.subject = candidate.key;
      outcome.evaluation.flop_count = 1000;
      outcome.evaluation.code_hash = candidate.key.ToString();
      outcome.evaluation.conditions = Conditions{.hardware = {.hardware_class = "cpu:x"}};
      if (on_outcome) on_outcome(outcome);
      outcomes.push_back(std::move(outcome));
    }
    sent_.push_back(std::move(outcomes));
    return {};
  }
  Answer<std::vector<Outcome>> Receive() override {
    auto oldest = std::move(sent_.front());
    sent_.pop_front();
    return oldest;
  }

  std::vector<looptree::TreeKey> asked;
  int cut = 0;
  std::function<void(Outcome&)> on_outcome;  // changes an outcome before it is sent

 private:
  std::deque<std::vector<Outcome>> sent_;
};

inline SharedSpace OpenSpace(const looptree::Source& source) {
  return LoopSpace::Open(source).value();
}
inline std::shared_ptr<const LoopSpace> OpenSpace(const std::string& uri) {
  return LoopSpace::Open(looptree::BenchmarkUri{uri}).value();
}

inline Exploration Explore(const SharedSpace& space, std::string_view strategy,
                           std::uint64_t seed) {
  return Exploration(space, FindStrategy(strategy).value()->make(space, seed));
}

}  // namespace loopfleet::client
