#include "client/search/exploration.h"

#include <cstring>
#include <utility>

namespace loopfleet::client {
namespace {

// After so many proposals in a row that are not new, a strategy counts as out of ideas.
constexpr std::size_t kMostRepeats = 2'000;

}  // namespace

std::size_t Exploration::HashKey::operator()(const looptree::TreeKey& key) const {
  std::size_t hash = 0;
  std::memcpy(&hash, key.bytes.data(), sizeof(hash));  // the key is a hash itself
  return hash;
}

std::vector<Candidate> Exploration::Ask(std::size_t most) {
  std::vector<Candidate> fresh;
  if (!std::exchange(has_asked_start_, true)) {
    fresh.push_back(space_->Start());
    start_ = fresh.front().key;
    asked_[*start_].push_back(fresh.front());
    return fresh;
  }
  for (std::size_t repeats = 0; fresh.size() < most && repeats < kMostRepeats;) {
    std::vector<Candidate> proposed = strategy_->Propose(most - fresh.size());
    if (proposed.empty()) break;
    const std::size_t had = fresh.size();
    std::vector<Evaluated> remembered;
    for (Candidate& one : proposed) {
      ++repeats;
      if (const auto known = known_.find(one.key); known != known_.end()) {
        remembered.push_back({.candidate = std::move(one), .cost = known->second});
        continue;
      }
      std::vector<Candidate>& same = asked_[one.key];
      if (same.empty()) {
        fresh.push_back(one);
        repeats = 0;
      }
      same.push_back(std::move(one));
    }
    if (fresh.size() == had && remembered.empty()) break;  // all under way: it waits for figures
    if (!remembered.empty()) strategy_->Tell(remembered);
  }
  return fresh;
}

void Exploration::Tell(std::span<const Evaluated> results, double seconds) {
  std::vector<Evaluated> answers;
  for (const Evaluated& one : results) {
    const auto asked = asked_.find(one.candidate.key);
    if (asked == asked_.end()) continue;
    for (Candidate& same : asked->second) {
      answers.push_back({.candidate = std::move(same), .cost = one.cost});
    }
    asked_.erase(asked);
    known_.emplace(one.candidate.key, one.cost);
    if (one.cost == kNoFigure) {
      ++without_figure_;
    } else if (!best_ || one.cost < best_->cost) {
      best_ = one;
      curve_.push_back({evaluations(), seconds, one.cost});
    }
  }
  if (!answers.empty()) strategy_->Tell(answers);
}

std::optional<double> Exploration::start_cost() const {
  if (!start_) return std::nullopt;
  const auto known = known_.find(*start_);
  if (known == known_.end() || known->second == kNoFigure) return std::nullopt;
  return known->second;
}

}  // namespace loopfleet::client
