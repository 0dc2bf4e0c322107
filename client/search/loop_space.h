#pragma once
// LoopSpace: the schedules that a search may reach from a benchmark's first tree. Every candidate
// that it makes is legal.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/search/search_space.h"

namespace loopfleet::client {

class LoopSpace final : public SearchSpace {
 public:
  // kInvalid: not a benchmark (with the nearest valid one), or one of dialect simple, whose
  // schedules have no choice of loops.
  static Result<std::shared_ptr<const LoopSpace>> Open(const looptree::Source& source);

  Candidate Start() const override;  // the untuned schedule
  std::vector<Candidate> Neighbours(const Candidate& from) const override;
  Candidate RandomStep(const Candidate& from, SplitMix64& random) const override;
  Candidate RandomWalk(std::size_t most, SplitMix64& random) const override;
  Candidate Mutate(const Candidate& from, SplitMix64& random) const override;
  Candidate Cross(const Candidate& first, const Candidate& last, SplitMix64& random) const override;

  // nullopt: the step is illegal there, or changes nothing.
  std::optional<Candidate> Extend(const Candidate& from, const Step& step) const;
  // From the start. Leaves out each step that is illegal where it is reached, or changes nothing.
  Candidate Follow(std::span<const Step> steps) const;
  // These actions from the start, and the steps that lead to the same tree, if there are such.
  // kInvalid: one is illegal, and which.
  Result<Candidate> FromActions(std::span<const looptree::Action> actions) const;

 private:
  LoopSpace(looptree::Source source, looptree::Benchmark benchmark)
      : SearchSpace(std::move(source)), benchmark_(std::move(benchmark)) {}
  // Adds the step to the candidate, whose key is then out of date. False: see Extend().
  bool Apply(Candidate& candidate, const Step& step) const;
  // Likewise. False: no step was found.
  bool ApplyRandom(Candidate& candidate, SplitMix64& random) const;
  void Replay(Candidate& candidate, std::span<const Step> steps) const;

  looptree::Benchmark benchmark_;
};

}  // namespace loopfleet::client
