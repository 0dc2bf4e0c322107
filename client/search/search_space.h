#pragma once
// SearchSpace: the schedules that a search may reach from a benchmark's first tree, and the ways
// from one to another. A pure value; every candidate that it makes is legal.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "client/search/candidate.h"
#include "common/base/random.h"
#include "common/base/result.h"
#include "common/looptree/datasets/benchmark.h"

namespace loopfleet::client {

class SearchSpace {
 public:
  // kInvalid: not a benchmark (with the nearest valid one), or one of dialect simple, whose
  // schedules have no choice of loops.
  static Result<SearchSpace> Open(const looptree::Source& source);

  const looptree::Source& source() const { return source_; }
  Candidate Start() const;  // the untuned schedule

  // nullopt: the step is illegal there, or changes nothing.
  std::optional<Candidate> Extend(const Candidate& from, const Step& step) const;
  // From the start. Leaves out each step that is illegal where it is reached, or changes nothing.
  Candidate Follow(std::span<const Step> steps) const;
  // All schedules that are one step away, each tree once. The order is fixed.
  std::vector<Candidate> Neighbours(const Candidate& from) const;

  // One random step further; `from` itself if no step was found.
  Candidate RandomStep(const Candidate& from, SplitMix64& random) const;
  // Up to `most` random steps from the start, at least one.
  Candidate RandomWalk(std::size_t most, SplitMix64& random) const;
  // One to three changes to the steps: added at the end or anywhere, taken out or replaced.
  Candidate Mutate(const Candidate& from, SplitMix64& random) const;
  // The first steps of one, then the last steps of the other.
  Candidate Cross(const Candidate& first, const Candidate& last, SplitMix64& random) const;
  // These actions from the start. kInvalid: one is illegal, and which.
  Result<Candidate> FromActions(std::span<const looptree::Action> actions) const;

 private:
  SearchSpace(looptree::Source source, looptree::Benchmark benchmark)
      : source_(std::move(source)), benchmark_(std::move(benchmark)) {}
  // Adds the step to the candidate, whose key is then out of date. False: see Extend().
  bool Apply(Candidate& candidate, const Step& step) const;
  // Likewise. False: no step was found.
  bool ApplyRandom(Candidate& candidate, SplitMix64& random) const;
  void Replay(Candidate& candidate, std::span<const Step> steps) const;

  looptree::Source source_;
  looptree::Benchmark benchmark_;
};

}  // namespace loopfleet::client
