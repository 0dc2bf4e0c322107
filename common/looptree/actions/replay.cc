#include <fmt/format.h>

#include <utility>

#include "common/base/result.h"
#include "common/looptree/actions/walk.h"

namespace loopfleet::looptree {
namespace {

template <class AnyWalk>
Checked<void> ApplyAll(AnyWalk& walk, std::span<const Action> actions,
                       const ReplayOptions& options) {
  WalkBudget budget(options.limits);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    auto spent = budget.Spend(walk, actions[i]);
    auto applied = spent ? walk.Apply(actions[i]) : std::move(spent);
    if (applied || (options.on_illegal == OnIllegal::kSkip &&
                    applied.error().code != RejectionCode::kLimitActions)) {
      continue;
    }
    applied.error().action_index = static_cast<std::uint32_t>(i);
    return applied;
  }
  return {};
}

enum class Dialects { kSimple, kAgent, kBoth };

Dialects DialectsOf(const Action& action) {
  if (std::holds_alternative<Up>(action) || std::holds_alternative<Down>(action)) {
    return Dialects::kBoth;
  }
  const bool simple = std::holds_alternative<ToggleMode>(action) ||
                      std::holds_alternative<ToggleThread>(action) ||
                      std::holds_alternative<IdleSplit>(action);
  return simple ? Dialects::kSimple : Dialects::kAgent;
}

}  // namespace

Checked<void> CheckDialect(const Action& action, Dialect dialect) {
  const Dialects of_action = DialectsOf(action);
  const bool simple = dialect == Dialect::kSimple;
  if (of_action == Dialects::kBoth || (of_action == Dialects::kSimple) == simple) return {};
  return Reject(
      RejectionCode::kInvalidAction,
      fmt::format("'{}' belongs to dialect {}; this benchmark's is {}", ActionName(action),
                  simple ? "agent" : "simple", simple ? "simple" : "agent"));
}

Checked<void> WalkBudget::Spend(std::uint64_t nodes) {
  if (nodes <= left_) {
    left_ -= nodes;
    return {};
  }
  return Reject(RejectionCode::kLimitActions,
                fmt::format("the actions build more than {} tree nodes in "
                            "all",
                            most_));
}

Checked<Replayed> Replay(const Source& source, std::span<const Action> actions,
                         const ReplayOptions& options) {
  if (actions.size() > options.limits.actions) {
    return Reject(
        RejectionCode::kLimitActions,
        fmt::format("{} actions; at most {} are allowed", actions.size(), options.limits.actions));
  }
  LF_TRY(Benchmark benchmark, OpenBenchmark(source, options.limits));
  if (benchmark.dialect == Dialect::kSimple) {
    SimpleWalk walk(benchmark);
    LF_TRY_VOID(ApplyAll(walk, actions, options));
    LF_TRY(LoopTree tree, walk.Tree(options.limits));
    return Replayed{std::move(benchmark), std::move(tree)};
  }
  AgentWalk walk(benchmark, options.rules, 0, options.limits);
  if (options.merge_all_first) LF_TRY_VOID(walk.MergeAll());
  LF_TRY_VOID(ApplyAll(walk, actions, options));
  return Replayed{std::move(benchmark), walk.tree()};
}

}  // namespace loopfleet::looptree
