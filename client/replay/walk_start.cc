#include "client/replay/walk_start.h"

#include <fmt/format.h>

namespace loopfleet::client {

using looptree::AgentWalk;
using looptree::TreeRef;

std::expected<AgentWalk, Failure> StartWalk(looptree::Benchmark benchmark, const WalkStart& start) {
  if (start.merge_all_first) {
    AgentWalk merging(benchmark, start.rules);
    if (const auto merged = merging.MergeAll(); !merged) {
      return std::unexpected(ToFailure(merged.error()));
    }
    benchmark.start = merging.tree();
  }
  const looptree::LoopTree& tree = benchmark.start;
  const bool is_loop = start.cursor >= 0 &&
                       start.cursor < static_cast<std::int64_t>(tree.nodes().size()) &&
                       tree.IsLoop(static_cast<TreeRef>(start.cursor));
  if (!is_loop && start.cursor != 0) {
    return std::unexpected(
        Failure{.code = FailureCode::kMalformed,
                .message = fmt::format("start_cursor {} is not a loop of the tree", start.cursor)});
  }
  return AgentWalk(benchmark, start.rules, static_cast<TreeRef>(start.cursor));
}

}  // namespace loopfleet::client
