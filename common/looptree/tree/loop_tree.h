#pragma once
// LoopTree: a program together with how it is looped: the value that actions transform and kernels
// are compiled from. Immutable, so copies share everything and cost next to nothing.
//
// A schedule gives each operation its loops, outermost first; building merges the equal leading
// loops of operations that follow each other into a tree (spec B.3). Reads and views without loops
// have no leaf: their consumers reach straight into the tensor.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/looptree/program/limits.h"
#include "common/looptree/program/program.h"
#include "common/looptree/program/rejection.h"

namespace loopfleet::looptree {

struct ProgramFacts;

enum class Annotation : std::uint8_t { kNone, kThread, kUnroll, kVectorize };

// One loop of one operation. One iteration covers everything that the deeper loops of the same
// dimension cover; `tail` is what is left over, in elements of that inner range, not in iterations.
// So the elements covered are size * inner + tail.
struct LoopSpec {
  DimId dim = 0;
  std::int64_t size = 1;
  std::int64_t tail = 0;
  Annotation annotation = Annotation::kNone;
  bool reusable = true;  // false: never shared with the next operation (spec B.3 step 8)
  friend bool operator==(const LoopSpec&, const LoopSpec&) = default;
};

struct NodeSchedule {
  std::vector<LoopSpec> loops;  // outermost first; empty: no leaf of its own
  double priority = 0;          // order among operations that are ready (spec B.3)
  friend bool operator==(const NodeSchedule&, const NodeSchedule&) = default;
};

using Schedule = std::vector<NodeSchedule>;  // one per Program::nodes

using TreeRef = std::uint32_t;  // index into LoopTree::nodes(): pre-order, as printed in "L3"
inline constexpr TreeRef kNoParent = UINT32_MAX;

struct TreeNode {
  enum class Kind : std::uint8_t { kLoop, kOperation };
  Kind kind = Kind::kLoop;
  TreeRef parent = kNoParent;
  std::uint32_t depth = 0;  // 0 for a root
  TreeRef end = 0;          // one past the last descendant: [ref + 1, end) is the subtree
  // kLoop:
  DimId dim = 0;
  std::uint32_t dim_depth = 0;  // how many enclosing loops run over the same dim: the primes
  std::int64_t size = 1;
  std::int64_t tail = 0;
  std::int64_t inner = 1;  // elements of the dim that one iteration covers; > tail
  Annotation annotation = Annotation::kNone;
  // kOperation:
  NodeId node = 0;
};

class LoopTree {
 public:
  // Checks that each operation's loops cover its dimensions exactly and that the tree is within
  // `limits`.
  static Checked<LoopTree> Build(std::shared_ptr<const Program> program, Schedule schedule,
                                 const Limits& limits = {});
  // The same program looped otherwise; cheaper than Build because the program is known to be valid.
  // The priorities must be those of schedule().
  Checked<LoopTree> WithSchedule(Schedule schedule, const Limits& limits = {}) const;

  const Program& program() const { return *body_->program; }
  const std::shared_ptr<const Program>& shared_program() const { return body_->program; }
  const Schedule& schedule() const { return body_->schedule; }
  std::span<const TreeNode> nodes() const { return body_->nodes; }

  // The children of a loop, or the roots for nullopt, in order.
  std::vector<TreeRef> Children(std::optional<TreeRef> parent) const;
  // Elements of the loop's dim that one iteration covers (product with tails of the deeper loops of
  // that dim, the maximum over the operations below).
  std::int64_t InnerExtent(TreeRef loop) const { return body_->nodes[loop].inner; }
  // The leaf of a program node; nullopt if it has none.
  std::optional<TreeRef> LeafOf(NodeId node) const;
  // The node's own loops, outermost first, one for each entry of its schedule. Its leaf may stand
  // inside more loops than these ("foreign" ones: interpret.h says what they mean).
  std::span<const TreeRef> LoopsOf(NodeId node) const;
  // The operations that have a leaf and read the node's result, directly or through views that have
  // none; ascending.
  std::vector<NodeId> ReadersOf(NodeId node) const;
  // The loop inside which the node's result lives: the deepest loop around the producer and all its
  // readers; nullopt: the whole kernel.
  std::optional<TreeRef> ScopeOf(NodeId node) const;
  // Elements along `dim`, one of the node's, of the buffer that holds its result: what the node's
  // own loops strictly below its scope cover.
  std::int64_t BufferExtent(NodeId node, DimId dim) const;
  // Bytes of all intermediate buffers: results of operations other than writes.
  std::uint64_t ScratchBytes() const;
  const ProgramFacts& facts() const { return *body_->facts; }

 private:
  friend class TreeBuilder;
  struct Body {
    std::shared_ptr<const Program> program;
    std::shared_ptr<const ProgramFacts> facts;  // of program
    Schedule schedule;
    std::vector<TreeNode> nodes;
    std::vector<TreeRef> leaves;             // per program node; kNoParent: none
    std::vector<TreeRef> loop_refs;          // the own loops of all program nodes, in turn
    std::vector<std::uint32_t> loop_begins;  // per program node, and one past the last
  };
  std::int64_t ExtentBelow(NodeId node, DimId dim, std::optional<TreeRef> scope) const;

  std::shared_ptr<const Body> body_;
};

// Floating-point operations of one run: each operation leaf except copy, read, write and view
// counts one for each point of its loops (spec B.6). Independent of the schedule.
std::uint64_t FlopCount(const Program& program);

// Bytes of all input and output tensors, held whole.
std::uint64_t TensorBytes(const Program& program);

}  // namespace loopfleet::looptree
