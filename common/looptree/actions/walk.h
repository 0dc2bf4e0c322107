#pragma once
// Walk: a tree with a cursor, moved and changed by actions. SimpleWalk is CompilerGym's session
// (spec A), AgentWalk is LoopTool's agent (spec B). Values: copy one to try something.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/looptree/actions/action.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/tree/loop_tree.h"
#include "common/looptree/tree/simple_tree.h"

namespace loopfleet::looptree {

enum class RuleSet : std::uint8_t {
  kStructural,  // whatever the tree itself admits; up and down step over operations
  kLoopNest,    // the original's legality (spec B.5)
  kLoopNest58,  // the older one that goes with the 58-float features (spec B.9)
};

enum class OnIllegal : std::uint8_t { kReject, kSkip };

// kInvalidAction, naming both dialects, for an action that only the other one has.
Checked<void> CheckDialect(const Action& action, Dialect dialect);

class SimpleWalk {
 public:
  enum class Mode : std::uint8_t { kSize, kSelect };
  using Order = SimpleLoops::Order;

  explicit SimpleWalk(const Benchmark& benchmark);

  // Never illegal for the dialect's own actions (no-ops are silent); kInvalidAction for the others.
  Checked<void> Apply(const Action& action);

  Checked<LoopTree> Tree(const Limits& limits = {}) const;
  std::array<std::int64_t, 3> ActionState() const;  // cursor, size, tail of the selected loop
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
  // `start_cursor` is a loop of the start tree, or 0. (A program without dimensions has no loops;
  // then most actions are illegal.)
  AgentWalk(const Benchmark& benchmark, RuleSet rules, TreeRef start_cursor = 0,
            const Limits& limits = {});

  // A rejection when the action is illegal here under the rule set; the walk is unchanged then.
  Checked<void> Apply(const Action& action);
  bool IsLegal(const Action& action) const;
  // How many tree nodes applying the action may build: what Limits::walk_nodes bounds.
  std::uint64_t CostOf(const Action& action) const;
  // Repeats merge from the top until nothing merges, as LoopTune does at the start of a session.
  // Undo does not go back past it; nothing may have been applied before.
  Checked<void> MergeAll();

  const LoopTree& tree() const { return state_.tree; }
  TreeRef cursor() const { return state_.cursor; }
  // What was applied and not undone, oldest first.
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
  std::deque<State> before_;  // before the last actions of history_: what undo goes back to
  std::size_t before_bytes_ = 0;
};

// What a walk may still build, so that no sequence of actions takes long: Limits::walk_nodes.
class WalkBudget {
 public:
  explicit WalkBudget(const Limits& limits) : most_(limits.walk_nodes), left_(most_) {}
  // kLimitActions where there is not enough left for the action.
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

// The whole of the rebuild stage: opens the source, applies the actions, gives the tree. Pure: the
// same everywhere, for coordinator, worker, command line and Python.
Checked<Replayed> Replay(const Source& source, std::span<const Action> actions,
                         const ReplayOptions& options = {});

}  // namespace loopfleet::looptree
