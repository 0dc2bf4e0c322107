#pragma once
// Exploration: one search of one benchmark, without clock or network. Asks a strategy for
// candidates, leaves out those that it has asked for before, and remembers every figure.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "client/search/candidate.h"
#include "client/search/strategy.h"

namespace loopfleet::client {

// The best figure changed.
struct CurvePoint {
  std::uint64_t evaluations = 0;  // distinct trees that were answered
  double seconds = 0;             // since the search began
  double best_cost = 0;
};

class Exploration {
 public:
  Exploration(SharedSpace space, std::unique_ptr<Strategy> strategy)
      : space_(std::move(space)), strategy_(std::move(strategy)) {}

  // Up to `most` trees that were never asked for; the first of all is the untuned schedule, alone.
  // None: the strategy has no more that are new.
  std::vector<Candidate> Ask(std::size_t most);
  // Figures of what Ask() returned, each once, in any order. `seconds`: since the search began.
  void Tell(std::span<const Evaluated> results, double seconds);

  const SearchSpace& space() const { return *space_; }
  // The quickest so far; nullopt: nothing has a figure.
  const std::optional<Evaluated>& best() const { return best_; }
  std::optional<double> start_cost() const;  // of the untuned schedule
  std::uint64_t evaluations() const { return known_.size(); }
  std::uint64_t without_figure() const { return without_figure_; }
  const std::vector<CurvePoint>& curve() const { return curve_; }

 private:
  struct HashKey {
    std::size_t operator()(const looptree::TreeKey& key) const;
  };

  SharedSpace space_;
  std::unique_ptr<Strategy> strategy_;
  bool has_asked_start_ = false;
  std::unordered_map<looptree::TreeKey, double, HashKey> known_;
  // Asked for and not told, with each candidate that leads there: the strategy waits for them all.
  std::unordered_map<looptree::TreeKey, std::vector<Candidate>, HashKey> asked_;
  std::optional<looptree::TreeKey> start_;
  std::optional<Evaluated> best_;
  std::uint64_t without_figure_ = 0;
  std::vector<CurvePoint> curve_;
};

}  // namespace loopfleet::client
