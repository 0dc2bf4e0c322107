#pragma once
// FuzzCase: one random input for a code generator: a program of some kind in small, odd sizes, a
// start tree, actions, and how to compile. A failing test prints its case as a line of text, which
// the program fuzz_case reads.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/random.h"
#include "common/base/result.h"
#include "common/job/job_spec.h"
#include "common/looptree/interpreter/interpret.h"

namespace loopfleet::worker {

struct FuzzCase {
  JobSpec job;               // source, actions, rules; illegal actions are skipped
  std::string isa = "host";  // host, avx512, avx2, baseline, or "c"
  std::uint32_t threads = 1;
  std::uint64_t input_seed = 1;
};

// A random next action, in each dialect; it may be illegal where the walk stands.
looptree::Action RandomAgentAction(SplitMix64& random);
looptree::Action RandomSimpleAction(SplitMix64& random);

std::string ToLine(const FuzzCase& fuzz);
Result<FuzzCase> ParseFuzzCase(std::string_view line);

// Generates cases from a seed. Each program is used with several start trees and action sequences,
// as its reference is expensive. The kinds of program take turns.
class FuzzCases {
 public:
  explicit FuzzCases(std::uint64_t seed) : random_(seed), kind_(random_.Below(1000)) {}

  // The next case, with isa and threads left at their defaults.
  FuzzCase Next();

 private:
  SplitMix64 random_;
  std::uint64_t kind_;
  std::uint64_t left_ = 0;  // cases to come of this program
  std::uint64_t input_seed_ = 0;
  std::uint64_t add_size_ = 0;  // dialect simple: size of the vectors; 0: program_ is used
  looptree::Program program_;
};

// The reference of a case's program, kept for the next case.
class CachedReference {
 public:
  struct Known {
    std::vector<looptree::Tensor> inputs;
    looptree::Reference reference;
  };
  const Known& Of(const looptree::Program& program, std::uint64_t input_seed);

 private:
  looptree::Program program_;
  std::uint64_t input_seed_ = 0;
  Known known_;
};

}  // namespace loopfleet::worker
