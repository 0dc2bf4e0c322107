#pragma once
// FuzzCase: one random question to a code generator: a program of some kind in small, odd sizes, a
// start tree, actions, and how to compile. A case is a line of text too: what a failing test prints
// and the program fuzz_case reads again.

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

// What a random walk takes next, in each dialect; it may be illegal where the walk stands.
looptree::Action RandomAgentAction(SplitMix64& random);
looptree::Action RandomSimpleAction(SplitMix64& random);

std::string ToLine(const FuzzCase& fuzz);
Result<FuzzCase> ParseFuzzCase(std::string_view line);

// Cases from a seed: each program is asked about with several start trees and action sequences, as
// its reference is dear. Every kind of program comes up, in turn.
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
  std::uint64_t add_size_ = 0;  // dialect simple: of the vectors; 0: program_
  looptree::Program program_;
};

// What the program of a case means, kept from case to case.
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
