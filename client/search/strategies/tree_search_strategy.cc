// Monte Carlo tree search. A node is a schedule, its children are one step away, and what is
// measured is the node itself, so there are no rollouts. Children are added slowly (progressive
// widening), since a schedule has about a hundred.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "client/search/strategies/strategies.h"

namespace loopfleet::client {
namespace {

constexpr double kExploration = 0.3;  // in units of log(time)
constexpr double kWidening = 2;       // a node visited v times has kWidening * sqrt(v) children
// One of so many children goes to a node drawn at random: below the best, every schedule may be
// known already by another way.
constexpr std::uint64_t kDrawnOneOf = 16;

class TreeSearch : public Strategy {
 public:
  TreeSearch(SharedSpace space, std::uint64_t seed) : space_(std::move(space)), random_(seed) {}

  std::vector<Candidate> Propose(std::size_t most) override {
    std::vector<Candidate> next;
    if (nodes_.empty()) return next;
    for (std::size_t i = 0; i < most; ++i) {
      const std::size_t node = Grow(Select());
      next.push_back(nodes_[node].candidate);
      node_of_.emplace(nodes_[node].candidate.key, node);
      // A visit without a reward yet: the next selection goes elsewhere.
      for (std::size_t at = node; at != kNone; at = nodes_[at].parent) ++nodes_[at].visits;
    }
    return next;
  }

  void Tell(std::span<const Evaluated> results) override {
    for (const Evaluated& one : results) {
      if (nodes_.empty()) {
        if (one.cost != kNoFigure) reference_ = one.cost;
        nodes_.push_back({.candidate = one.candidate, .visits = 1});
        continue;
      }
      if (reference_ == 0 && one.cost != kNoFigure) reference_ = one.cost;
      const auto found = node_of_.find(one.candidate.key);
      if (found == node_of_.end()) continue;
      if (one.is_tried) {
        Reward(found->second, one.cost == kNoFigure ? kWorst : std::log(reference_ / one.cost));
      } else {
        TakeBack(found->second);
      }
      node_of_.erase(found);
    }
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  static constexpr double kWorst = -10;  // reward of what has no figure
  struct Node {
    Candidate candidate;
    std::size_t parent = kNone;
    std::vector<std::size_t> children = {};
    double visits = 0;
    double best = 0;  // reward, of itself and all below; a guess until there is one
    bool has_reward = false;
  };

  void Reward(std::size_t node, double reward) {
    for (std::size_t at = node; at != kNone; at = nodes_[at].parent) {
      nodes_[at].best = nodes_[at].has_reward ? std::max(nodes_[at].best, reward) : reward;
      nodes_[at].has_reward = true;
    }
  }

  // As if the node had never been visited: without any other visit it leaves the tree.
  void TakeBack(std::size_t node) {
    for (std::size_t at = node; at != kNone;) {
      const std::size_t parent = nodes_[at].parent;
      if (--nodes_[at].visits == 0) {
        std::erase(nodes_[parent].children, at);  // the root keeps its own visit
        free_.push_back(at);
      }
      at = parent;
    }
  }

  std::size_t Select() {
    if (random_.Below(kDrawnOneOf) == 0) {
      std::size_t drawn = random_.Below(nodes_.size());
      while (nodes_[drawn].visits == 0) drawn = random_.Below(nodes_.size());
      return drawn;
    }
    std::size_t at = 0;
    for (;;) {
      const Node& node = nodes_[at];
      if (static_cast<double>(node.children.size()) < kWidening * std::sqrt(node.visits)) return at;
      const double log_visits = std::log(node.visits);
      at = *std::ranges::max_element(node.children, {}, [&](std::size_t child) {
        return nodes_[child].best + kExploration * std::sqrt(log_visits / nodes_[child].visits);
      });
    }
  }

  // A new child, or the old one with the same tree.
  std::size_t Grow(std::size_t at) {
    Candidate next = space_->RandomStep(nodes_[at].candidate, random_);
    if (next.key == nodes_[at].candidate.key) return at;
    for (const std::size_t child : nodes_[at].children) {
      if (nodes_[child].candidate.key == next.key) return child;
    }
    std::size_t place = nodes_.size();
    if (free_.empty()) {
      nodes_.emplace_back();
    } else {
      place = free_.back();
      free_.pop_back();
    }
    nodes_[at].children.push_back(place);
    nodes_[place] = {.candidate = std::move(next), .parent = at, .best = nodes_[at].best - 1};
    return place;
  }

  SharedSpace space_;
  SplitMix64 random_;
  double reference_ = 0;  // of the first that had a figure; 0: none had
  std::vector<Node> nodes_;
  std::vector<std::size_t> free_;  // places of nodes that left the tree: they have no visits
  std::multimap<looptree::TreeKey, std::size_t> node_of_;  // of what has no figure yet
};

}  // namespace

std::unique_ptr<Strategy> MakeTreeSearch(SharedSpace space, std::uint64_t seed) {
  return std::make_unique<TreeSearch>(std::move(space), seed);
}

}  // namespace loopfleet::client
