#pragma once
// PassSpace: sequences of LLVM passes over a program: CompilerGym's actions, as far as they do
// something and differ (ActionSpace::kDistinct). The key is of the sequence: that two sequences
// leave the same module is only known afterwards.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "client/search/search_space.h"

namespace loopfleet::client {

class PassSpace final : public SearchSpace {
 public:
  // kInvalid: not a program (with the nearest valid one).
  static Result<std::shared_ptr<const PassSpace>> Open(const looptree::Source& source);

  // kInvalid: one is no pass that a worker takes, and which.
  Result<Candidate> FromPasses(std::vector<std::string> passes) const;

  Candidate Start() const override;  // no passes
  std::vector<Candidate> Neighbours(const Candidate& from) const override;
  Candidate RandomStep(const Candidate& from, SplitMix64& random) const override;
  // A pass does less than a change to a loop, so a step of a walk is up to four of them.
  Candidate RandomWalk(std::size_t most, SplitMix64& random) const override;
  Candidate Mutate(const Candidate& from, SplitMix64& random) const override;
  Candidate Cross(const Candidate& first, const Candidate& last, SplitMix64& random) const override;

 private:
  PassSpace(looptree::Source source, std::string program);
  Candidate Make(std::vector<std::string> passes) const;  // the first kMostPasses of them
  const std::string& Draw(SplitMix64& random) const;

  const std::string program_;
  std::vector<std::string> flags_;
};

}  // namespace loopfleet::client
