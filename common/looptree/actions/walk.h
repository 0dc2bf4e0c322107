#pragma once
// Walk: a tree with a cursor; actions move the cursor and change the tree. SimpleWalk follows
// CompilerGym's loop_tool environment (spec A), AgentWalk follows LoopTool's agent (spec B). Both
// are values: copy one to try an action.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/base/enum_names.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/tree/loop_tree.h"
#include "common/looptree/tree/simple_tree.h"

namespace loopfleet::looptree {

enum class RuleSet : std::uint8_t {
  kStructural,  // whatever the tree admits; up and down step over operations
  kLoopNest,    // the original's legality (spec B.5)
  kLoopNest58,  // the older rules, used with the 58-float features (spec B.9)
};

enum class OnIllegal : std::uint8_t { kReject, kSkip };

// kInvalidAction, naming both dialects, for an action that only the other dialect has.
Checked<void> CheckDialect(const Action& action, Dialect dialect);

class SimpleWalk {
 public:
  enum class Mode : std::uint8_t { kSize, kSelect };
  using Order = SimpleLoops::Order;

  explicit SimpleWalk(const Benchmark& benchmark);

  // Every action of dialect simple is legal, and may have no effect. Others are kInvalidAction.
  Checked<void> Apply(const Action& action);

  Checked<LoopTree> Tree(const Limits& limits = {}) const;
  std::array<std::int64_t, 3> ActionState() const;  // cursor; size and tail of its loop
  Mode mode() const { return mode_; }
  const std::array<bool, 3>& thread() const { return loops_.thread; }
  const std::array<Order, 3>& orders() const { return loops_.orders; }

 private:
  void Resize(std::int64_t change);

  std::shared_ptr<const Program> program_;
  std::int64_t element_count_ = 1;
  SimpleLoops loops_;
  std::size_t cursor_ = 0;
  Mode mode_ = Mode::kSize;
};

class AgentWalk {
 public:
  // `start_cursor`: a loop of the start tree, or 0. A program without dimensions has no loops, and
  // most actions on it are illegal.
  AgentWalk(const Benchmark& benchmark, RuleSet rules, TreeRef start_cursor = 0,
            const Limits& limits = {});

  // Rejects an action that the rule set does not allow here, and leaves the walk unchanged.
  Checked<void> Apply(const Action& action);
  bool IsLegal(const Action& action) const;
  // The most tree nodes that applying the action may build; Limits::walk_nodes bounds the sum.
  std::uint64_t CostOf(const Action& action) const;
  // Repeats merge from the top until nothing merges, as LoopTune does before its first action. Undo
  // does not reach behind it. Allowed only before the first action.
  Checked<void> MergeAll();

  const LoopTree& tree() const { return state_.tree; }
  TreeRef cursor() const { return state_.cursor; }
  // Applied and not undone, oldest first.
  std::span<const Action> history() const { return history_; }

  struct State {
    LoopTree tree;
    TreeRef cursor = 0;
  };

 private:
  Checked<State> After(const Action& action) const;
  void Remember(State state);
  void UndoLast();

  RuleSet rules_;
  Limits limits_;
  State start_;
  State state_;
  std::vector<Action> history_;
  std::deque<State> before_;  // states before the last actions of history_, for undo
  std::size_t before_bytes_ = 0;
};

// Counts the tree nodes that a walk may still build (Limits::walk_nodes), so that no sequence of
// actions takes long.
class WalkBudget {
 public:
  explicit WalkBudget(const Limits& limits) : most_(limits.walk_nodes), left_(most_) {}
  // kLimitActions if too little is left for the action.
  Checked<void> Spend(const AgentWalk& walk, const Action& action) {
    return Spend(walk.CostOf(action));
  }
  Checked<void> Spend(const SimpleWalk&, const Action&) { return Spend(1); }

 private:
  Checked<void> Spend(std::uint64_t nodes);

  std::uint64_t most_;
  std::uint64_t left_;
};

using Walk = std::variant<SimpleWalk, AgentWalk>;

struct ReplayOptions {
  RuleSet rules = RuleSet::kStructural;
  OnIllegal on_illegal = OnIllegal::kReject;
  bool merge_all_first = false;
  Limits limits;
};

struct Replayed {
  Benchmark benchmark;
  LoopTree tree;
};

// The whole replay stage: opens the source, applies the actions, returns the tree. A pure function
// with the same result in coordinator, worker, command line and Python.
Checked<Replayed> Replay(const Source& source, std::span<const Action> actions,
                         const ReplayOptions& options = {});

}  // namespace loopfleet::looptree

namespace loopfleet {

template <>
struct EnumNames<looptree::RuleSet> {
  static constexpr std::array kAll = {NamedValue{looptree::RuleSet::kStructural, "structural"},
                                      NamedValue{looptree::RuleSet::kLoopNest, "loop_nest"},
                                      NamedValue{looptree::RuleSet::kLoopNest58, "loop_nest_58"}};
};

template <>
struct EnumNames<looptree::OnIllegal> {
  static constexpr std::array kAll = {NamedValue{looptree::OnIllegal::kReject, "reject"},
                                      NamedValue{looptree::OnIllegal::kSkip, "skip"}};
};

}  // namespace loopfleet
