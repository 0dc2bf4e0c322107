#include "bench/peers/halide_peer.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <fstream>
#include <vector>

#include "bench/peers/c_peer.h"
#include "client/local_cluster.h"
#include "common/base/subprocess.h"

namespace loopfleet::bench {
namespace {

constexpr Nanos kLimit = std::chrono::seconds(100);

Result<nlohmann::json> ScheduleOf(const looptree::LoopTree& tree) {
  const looptree::Program& program = tree.program();
  const auto product = FindProduct(program);
  if (!product) return Fail(ErrorKind::kInvalid, "the program is no matrix product");
  nlohmann::json sizes = nlohmann::json::array();
  for (const auto& dim : program.dims) sizes.push_back(dim.size);
  nlohmann::json loops = nlohmann::json::array();
  const std::vector<looptree::LoopSpec>& specs = tree.schedule()[product->multiply].loops;
  const std::vector<std::int64_t> strides = Strides(specs);
  for (std::size_t i = 0; i < specs.size(); ++i) loops.push_back({specs[i].dim, strides[i]});
  return nlohmann::json{{"sizes", sizes},
                        {"left", program.nodes[product->left].dims},
                        {"right", program.nodes[product->right].dims},
                        {"out", program.nodes[product->sum].dims},
                        {"loops", loops}};
}

}  // namespace

Result<std::optional<double>> HalideSeconds(std::span<const looptree::LoopTree> trees,
                                            const std::filesystem::path& dir) {
  const std::filesystem::path evaluator = client::OwnDirectory() / "bench_halide_evaluator";
  if (!std::filesystem::exists(evaluator)) return std::nullopt;
  const std::filesystem::path schedules = dir / "schedules.jsonl";
  const std::filesystem::path took = dir / "took";
  {
    std::ofstream lines(schedules);
    for (const looptree::LoopTree& tree : trees) {
      LF_TRY(const nlohmann::json line, ScheduleOf(tree));
      lines << line.dump() << "\n";
    }
  }
  LF_TRY(auto process, Subprocess::Start({.argv = {evaluator, schedules, took}}));
  const auto status = process.WaitFor(kLimit);
  double seconds = 0;
  if (!status || status->code != 0 || !(std::ifstream(took) >> seconds)) {
    return Fail(ErrorKind::kSystem, "bench_halide_evaluator failed");
  }
  return seconds;
}

}  // namespace loopfleet::bench
