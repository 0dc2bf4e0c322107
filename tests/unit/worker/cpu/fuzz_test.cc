// Compares twenty thousand random pairs of program and actions, each compiled for one of the host's
// instruction sets, with the interpreter and the reference. Sharded, so that ctest runs them in
// parallel. A failing case is printed as a line that build/<preset>/tests/fuzz_case can rerun.

#include <gtest/gtest.h>

#include "tests/unit/worker/cpu/fuzz_check.h"

namespace loopfleet::worker {
namespace {

constexpr int kShards = 20;
constexpr std::uint64_t kCasesInShard = 1000;

class Fuzz : public ::testing::TestWithParam<int> {};

TEST_P(Fuzz, EqualsTheInterpreter) {
  FuzzCases cases(static_cast<std::uint64_t>(GetParam()));
  FuzzCheck check;
  const std::vector<std::string> isas = FuzzCheck::IsasOfHost();
  for (std::uint64_t i = 0; i < kCasesInShard; ++i) {
    FuzzCase fuzz = cases.Next();
    fuzz.isa = isas[i % isas.size()];
    ASSERT_EQ(check.Check(fuzz), "")
        << "case " << i << ", reproduce with: echo '" << ToLine(fuzz) << "' | fuzz_case";
  }
}
INSTANTIATE_TEST_SUITE_P(Shard, Fuzz, ::testing::Range(0, kShards));

}  // namespace
}  // namespace loopfleet::worker
