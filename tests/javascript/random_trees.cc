// random_trees FOLDER COUNT SEED: writes random trees as jobs, with inputs and what the interpreter
// makes of them. For case i: i.json, a job line; i.inputs, all inputs as float32; i.expected, for
// each element of each output its value and the bound of its error, as float64.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "common/job/loop_schedule.h"
#include "common/looptree/text/text.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/portable_c/c_library.h"

namespace loopfleet::worker {
namespace {

using looptree::Tensor;

template <class Number>
std::string BytesOf(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

std::vector<double> ExpectedOf(const std::vector<Tensor>& outputs,
                               const looptree::Reference& reference) {
  std::vector<double> expected;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t at = 0; at < outputs[i].size(); ++at) {
      const bool is_exact = reference.tolerance[i].empty();
      expected.push_back(outputs[i][at]);
      expected.push_back(is_exact ? 0 : 2 * reference.tolerance[i][at]);  // of both
    }
  }
  return expected;
}

void WriteCases(const std::string& folder, std::uint64_t count, std::uint64_t seed) {
  FuzzCases fuzz(seed);
  CachedReference references;
  for (std::uint64_t i = 0; i < count; ++i) {
    const FuzzCase one = fuzz.Next();
    const looptree::LoopTree tree = ReplayJob(one.job).value().tree;
    const auto& [inputs, reference] = references.Of(tree.program(), one.input_seed);
    std::string input_bytes;
    for (const Tensor& input : inputs) input_bytes += BytesOf(input);
    const nlohmann::json job = {{"ir", looptree::IrTextOf(tree)},
                                {"actions", nlohmann::json::array()}};
    WriteFile(fmt::format("{}/{}.json", folder, i), job.dump() + "\n");
    WriteFile(fmt::format("{}/{}.inputs", folder, i), input_bytes);
    WriteFile(fmt::format("{}/{}.expected", folder, i),
              BytesOf(ExpectedOf(looptree::Interpret(tree, inputs), reference)));
  }
}

}  // namespace
}  // namespace loopfleet::worker

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() != 4) {
    fmt::print(stderr, "usage: random_trees FOLDER COUNT SEED\n");
    return 2;
  }
  loopfleet::worker::WriteCases(arguments[1], std::strtoull(arguments[2], nullptr, 10),
                                std::strtoull(arguments[3], nullptr, 10));
  return 0;
}
