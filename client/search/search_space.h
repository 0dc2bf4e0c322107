#pragma once
// SearchSpace: the candidates that a search of one benchmark may try, and the ways from one to
// another. A pure value: it measures nothing. Each kind of benchmark has its own (loop_space.h,
// pass_space.h); strategies know only this.

#include <cstddef>
#include <memory>
#include <vector>

#include "client/search/candidate.h"
#include "common/base/random.h"
#include "common/base/result.h"
#include "common/looptree/datasets/benchmark.h"

namespace loopfleet::client {

class SearchSpace {
 public:
  virtual ~SearchSpace() = default;

  const looptree::Source& source() const { return source_; }
  virtual Candidate Start() const = 0;  // with no steps
  // All candidates that are one step away, each key once. The order is fixed.
  virtual std::vector<Candidate> Neighbours(const Candidate& from) const = 0;
  // One random step further; `from` itself if no step was found.
  virtual Candidate RandomStep(const Candidate& from, SplitMix64& random) const = 0;
  // Up to `most` random steps from the start, at least one.
  virtual Candidate RandomWalk(std::size_t most, SplitMix64& random) const = 0;
  // One to three changes to the steps: added at the end or anywhere, taken out or replaced.
  virtual Candidate Mutate(const Candidate& from, SplitMix64& random) const = 0;
  // The first steps of one, then the last steps of the other.
  virtual Candidate Cross(const Candidate& first, const Candidate& last,
                          SplitMix64& random) const = 0;

 protected:
  explicit SearchSpace(looptree::Source source) : source_(std::move(source)) {}

 private:
  looptree::Source source_;
};

using SharedSpace = std::shared_ptr<const SearchSpace>;

bool IsProgram(const looptree::Source& source);  // for LLVM passes; else a loop nest

}  // namespace loopfleet::client
