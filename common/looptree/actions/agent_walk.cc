#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/result.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/tree/transform.h"

namespace loopfleet::looptree {
namespace {

using State = AgentWalk::State;

std::unexpected<Rejection> Illegal(const Action& action, std::string_view why) {
  return Reject(RejectionCode::kInvalidAction,
                fmt::format("{} is illegal here: {}", ActionName(action), why));
}

// Checks the tree that an action leads to against the rule set (spec B.5, B.9).
Checked<void> CheckRules(const LoopTree& tree, RuleSet rules, const Action& action) {
  constexpr std::uint32_t kMostLoops = 10;  // under the first root
  constexpr std::int64_t kVectorWidth = 8;
  if (rules == RuleSet::kStructural) return {};
  TreeRef innermost = 0;  // the innermost of the first nest's leading loops
  while (innermost + 1 < tree.nodes().size() && tree.IsLoop(innermost + 1)) ++innermost;
  const TreeNode& loop = tree.nodes()[innermost];
  if (loop.kind == TreeNode::Kind::kLoop && loop.size != 1 && loop.size % kVectorWidth != 0) {
    return Illegal(action,
                   "the innermost leading loop would have neither size 1 nor a multiple of 8");
  }
  if (rules == RuleSet::kLoopNest58) return {};
  std::uint32_t loops = 0;
  for (TreeRef ref = 0; ref < tree.nodes()[0].end; ++ref) loops += tree.IsLoop(ref);
  if (loops > kMostLoops) return Illegal(action, "the first nest would have more than 10 loops");
  return {};
}

// The loop before or after `from` in pre-order. The original's rules stop at an operation; the
// structural rules step over it. `from` need not be a loop or even in the tree: after a swap the
// cursor's number is looked up in a tree of another shape.
std::optional<TreeRef> LoopAbove(const LoopTree& tree, TreeRef from, RuleSet rules) {
  const auto count = static_cast<TreeRef>(tree.nodes().size());
  if (rules != RuleSet::kStructural) {
    if (from == 0 || from >= count || !tree.IsLoop(from - 1)) return std::nullopt;
    return from - 1;
  }
  for (TreeRef ref = std::min(from, count); ref-- > 0;) {
    if (tree.IsLoop(ref)) return ref;
  }
  return std::nullopt;
}

std::optional<TreeRef> LoopBelow(const LoopTree& tree, TreeRef from, RuleSet rules) {
  const auto count = static_cast<TreeRef>(tree.nodes().size());
  if (rules != RuleSet::kStructural) {
    if (from >= count || from + 1 >= count || !tree.IsLoop(from + 1)) return std::nullopt;
    return from + 1;
  }
  for (TreeRef ref = from; ++ref < count;) {
    if (tree.IsLoop(ref)) return ref;
  }
  return std::nullopt;
}

// The last loop up to `cursor`; under the original's rules, the last one in the first nest.
TreeRef LastLoopUpTo(const LoopTree& tree, TreeRef cursor, RuleSet rules) {
  TreeRef end = static_cast<TreeRef>(tree.nodes().size());
  if (rules != RuleSet::kStructural) end = tree.nodes()[0].end;
  TreeRef ref = std::min(cursor, end - 1);
  while (ref > 0 && !tree.IsLoop(ref)) --ref;
  return ref;
}

// Applies one action to a state. A function object, so that std::visit covers every action.
struct Step {
  const State& state;
  RuleSet rules;
  const Limits& limits;
  const Action& action;

  std::optional<TreeRef> Above(const LoopTree& tree) const {
    return LoopAbove(tree, state.cursor, rules);
  }
  std::optional<TreeRef> Below(const LoopTree& tree) const {
    return LoopBelow(tree, state.cursor, rules);
  }

  Checked<State> operator()(Up) const {
    const auto target = Above(state.tree);
    if (!target) return Illegal(action, "there is no loop above");
    return State{state.tree, *target};
  }
  Checked<State> operator()(Down) const {
    const auto target = Below(state.tree);
    if (!target) return Illegal(action, "there is no loop below");
    return State{state.tree, *target};
  }

  // After the swap the cursor moves by number in the new tree. Two loops over one dimension are not
  // swapped, but the cursor moves all the same.
  Checked<State> SwapWith(std::optional<TreeRef> other,
                          std::optional<TreeRef> (Step::*follow)(const LoopTree&) const) const {
    if (!other) return Illegal(action, "there is no loop to swap with");
    const auto nodes = state.tree.nodes();
    if (nodes[*other].dim == nodes[state.cursor].dim) return State{state.tree, *other};
    LF_TRY(LoopTree swapped, Swap(state.tree, state.cursor, *other, limits));
    const auto target = (this->*follow)(swapped);
    if (!target) return Illegal(action, "the cursor would leave the loops");
    return State{std::move(swapped), *target};
  }
  Checked<State> operator()(SwapUp) const { return SwapWith(Above(state.tree), &Step::Above); }
  Checked<State> operator()(SwapDown) const { return SwapWith(Below(state.tree), &Step::Below); }

  Checked<State> operator()(Split split) const {
    LF_TRY(LoopTree tree, SplitLoop(state.tree, state.cursor, split.factor, limits));
    return State{std::move(tree), state.cursor};
  }

  Checked<State> operator()(Merge) const {
    LF_TRY(auto merged, MergeLoop(state.tree, state.cursor, limits));
    if (!merged) return state;
    const TreeRef cursor = LastLoopUpTo(*merged, state.cursor, rules);
    return State{*std::move(merged), cursor};
  }

  // Spec B.5: from the top to the end, merges at the cursor, and moves down if the cursor did not
  // move.
  Checked<State> operator()(MergeAllLoops) const;

  // Toggles unroll on the path, from the cursor's loop inwards. Loops on the path before the cursor
  // lose their annotation; nothing else changes.
  Checked<State> operator()(Unroll) const {
    const bool on = state.tree.nodes()[state.cursor].annotation != Annotation::kUnroll;
    std::vector<LoopAnnotation> path;
    for (const TreeRef loop : Path()) {
      const bool inward = loop >= state.cursor;
      path.push_back({loop, on && inward ? Annotation::kUnroll : Annotation::kNone});
    }
    LF_TRY(LoopTree tree, Annotate(state.tree, path, limits));
    return State{std::move(tree), state.cursor};
  }
  // The loops around the cursor, the cursor's loop, and the first loops inside it, down to an
  // operation. Under the original's rules: the first nest's leading loops, wherever the cursor is.
  std::vector<TreeRef> Path() const {
    const auto nodes = state.tree.nodes();
    std::vector<TreeRef> path;
    if (rules != RuleSet::kStructural) {
      for (TreeRef ref = 0; ref < nodes.size() && state.tree.IsLoop(ref); ++ref) {
        path.push_back(ref);
      }
      return path;
    }
    for (TreeRef ref = state.cursor; ref != kNoParent; ref = nodes[ref].parent) path.push_back(ref);
    std::reverse(path.begin(), path.end());
    for (TreeRef ref = state.cursor + 1; ref < nodes.size() && state.tree.IsLoop(ref); ++ref) {
      path.push_back(ref);
    }
    return path;
  }

  Checked<State> operator()(Vectorize) const {
    const bool on = state.tree.nodes()[state.cursor].annotation != Annotation::kVectorize;
    LF_TRY(LoopTree tree, Annotate(state.tree, state.cursor,
                                   on ? Annotation::kVectorize : Annotation::kNone, limits));
    return State{std::move(tree), state.cursor};
  }

  Checked<State> operator()(Dummy) const { return state; }

  Checked<State> WrongDialect() const {
    return std::unexpected(CheckDialect(action, Dialect::kAgent).error());
  }
  Checked<State> operator()(ToggleMode) const { return WrongDialect(); }
  Checked<State> operator()(ToggleThread) const { return WrongDialect(); }
  Checked<State> operator()(IdleSplit) const { return WrongDialect(); }
  Checked<State> operator()(Undo) const {
    LF_CHECK(false, "undo is the walk's, not a step");
    return state;
  }
};

// Memory of one state that shares its tree with no other.
std::size_t BytesOf(const LoopTree& tree) {
  std::size_t bytes = sizeof(State) + tree.nodes().size() * sizeof(TreeNode);
  for (const NodeSchedule& node : tree.schedule()) {
    bytes += sizeof(NodeSchedule) + node.loops.size() * (sizeof(LoopSpec) + sizeof(TreeRef));
  }
  return bytes;
}

bool IsMove(const Action& action) {
  return std::holds_alternative<Up>(action) || std::holds_alternative<Down>(action) ||
         std::holds_alternative<Dummy>(action);
}

Checked<State> Stepped(const State& state, RuleSet rules, const Limits& limits,
                       const Action& action) {
  const bool anywhere = IsMove(action) || std::holds_alternative<MergeAllLoops>(action);
  if (!anywhere && !state.tree.IsLoop(state.cursor)) {
    return Illegal(action, "the cursor is not on a loop");
  }
  LF_TRY(State next, std::visit(Step{state, rules, limits, action}, action));
  // Nests that fuse leave fewer nodes, so the cursor's old number may now be an operation or not
  // exist. The original's rules leave the cursor on an operation.
  if (rules == RuleSet::kStructural || next.cursor >= next.tree.nodes().size()) {
    next.cursor = LastLoopUpTo(next.tree, next.cursor, rules);
  }
  return next;
}

Checked<State> Step::operator()(MergeAllLoops) const {
  State merged{state.tree, 0};
  for (;;) {
    if (merged.tree.IsLoop(merged.cursor)) {  // the first root may be an operation
      LF_TRY(State next, Stepped(merged, rules, limits, Merge{}));
      const bool moved = next.cursor != merged.cursor;
      merged = std::move(next);
      if (moved) continue;
    }
    auto below = Stepped(merged, rules, limits, Down{});
    if (!below) break;
    merged = *std::move(below);
  }
  merged.cursor = 0;
  return merged;
}

}  // namespace

AgentWalk::AgentWalk(const Benchmark& benchmark, RuleSet rules, TreeRef start_cursor,
                     const Limits& limits)
    : rules_(rules), limits_(limits), start_{benchmark.start, start_cursor}, state_(start_) {
  LF_CHECK(start_cursor < state_.tree.nodes().size(), "start cursor {} is not in the tree",
           start_cursor);
}

Checked<State> AgentWalk::After(const Action& action) const {
  LF_TRY(State next, Stepped(state_, rules_, limits_, action));
  LF_TRY_VOID(CheckRules(next.tree, rules_, action));
  return next;
}

Checked<void> AgentWalk::Apply(const Action& action) {
  if (std::holds_alternative<Undo>(action)) {
    if (history_.empty()) return Illegal(action, "there is nothing to undo");
    UndoLast();
    return {};
  }
  LF_TRY(State next, After(action));
  Remember(std::exchange(state_, std::move(next)));
  history_.push_back(action);
  return {};
}

std::uint64_t AgentWalk::CostOf(const Action& action) const {
  const std::uint64_t nodes = state_.tree.nodes().size();
  if (IsMove(action)) return 1;
  return std::holds_alternative<MergeAllLoops>(action) ? nodes * nodes : nodes;
}

void AgentWalk::Remember(State state) {
  constexpr std::size_t kMostBytes = 8 << 20;  // several thousand trees of a matrix product
  before_bytes_ += BytesOf(state.tree);
  before_.push_back(std::move(state));
  while (before_bytes_ > kMostBytes) {
    before_bytes_ -= BytesOf(before_.front().tree);
    before_.pop_front();
  }
}

// Actions are pure, so replaying the earlier actions restores a state that is no longer kept.
void AgentWalk::UndoLast() {
  history_.pop_back();
  if (!before_.empty()) {
    before_bytes_ -= BytesOf(before_.back().tree);
    state_ = std::move(before_.back());
    before_.pop_back();
    return;
  }
  state_ = start_;
  for (const Action& action : history_) {
    auto next = After(action);
    LF_CHECK(next.has_value(), "{} was legal before", ActionName(action));
    Remember(std::exchange(state_, *std::move(next)));
  }
}

bool AgentWalk::IsLegal(const Action& action) const {
  if (std::holds_alternative<Undo>(action)) return !history_.empty();
  return After(action).has_value();
}

Checked<void> AgentWalk::MergeAll() {
  LF_CHECK(history_.empty(), "merge_all belongs before the first action");
  LF_TRY(state_, Stepped(state_, rules_, limits_, MergeAllLoops{}));
  start_ = state_;
  return {};
}

}  // namespace loopfleet::looptree
