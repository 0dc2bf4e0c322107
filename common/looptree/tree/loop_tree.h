#pragma once
// LoopTree: a program and its schedule. Actions transform it, and kernels are compiled from it.
// Immutable: copies share all data and cost next to nothing.
//
// A schedule gives each operation its loops, outermost first. Build merges the equal leading loops
// of consecutive operations into a tree (spec B.3). Reads and views without loops have no leaf:
// their consumers access the tensor directly.

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

// What a loop asks of the compiler. Greater numbers are words of people's own (annotation_text.h):
// they are printed, and have no effect.
enum class Annotation : std::uint16_t { kNone, kThread, kUnroll, kVectorize };
constexpr Annotation EffectOf(Annotation annotation) {
  return annotation <= Annotation::kVectorize ? annotation : Annotation::kNone;
}

// One loop of one operation. An iteration covers the `inner` elements that the deeper loops of the
// same dimension cover. `tail` is the remainder, in elements, not in iterations: the loop covers
// size * inner + tail elements.
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
  double priority = 0;          // order among ready operations (spec B.3)
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
  std::uint32_t dim_depth = 0;  // enclosing loops over the same dim; printed as primes
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
  // `limits`. program() is then the given one in its plainest form (Plain in view_map.h).
  static Checked<LoopTree> Build(std::shared_ptr<const Program> program, Schedule schedule,
                                 const Limits& limits = {});
  // The same program with another schedule. Cheaper than Build, because the program is known to be
  // valid. Priorities must equal those of schedule().
  Checked<LoopTree> WithSchedule(Schedule schedule, const Limits& limits = {}) const;

  const Program& program() const { return *body_->program; }
  const std::shared_ptr<const Program>& shared_program() const { return body_->program; }
  const Schedule& schedule() const { return body_->schedule; }
  std::span<const TreeNode> nodes() const { return body_->nodes; }
  bool IsLoop(TreeRef ref) const { return nodes()[ref].kind == TreeNode::Kind::kLoop; }

  // The children of a loop, or the roots for nullopt, in order.
  std::vector<TreeRef> Children(std::optional<TreeRef> parent) const;
  // Elements of the loop's dim that one iteration covers: the size, tails included, of the deeper
  // loops over that dim; the maximum over the operations inside.
  std::int64_t InnerExtent(TreeRef loop) const { return body_->nodes[loop].inner; }
  // The leaf of a program node; nullopt if it has none.
  std::optional<TreeRef> LeafOf(NodeId node) const;
  // The node's own loops, outermost first, one per entry of its schedule. Its leaf may also be
  // inside foreign loops (interpret.h says what they mean).
  std::span<const TreeRef> LoopsOf(NodeId node) const;
  // The operations with a leaf that read the node's result, directly or through views without a
  // leaf; ascending.
  std::vector<NodeId> ReadersOf(NodeId node) const;
  // The loop in whose iteration the node's result lives: the deepest loop around the producer and
  // all its readers. nullopt: the whole kernel.
  std::optional<TreeRef> ScopeOf(NodeId node) const;
  // Size along `dim`, one of the node's dims, of the buffer for its result: the elements that the
  // node's own loops strictly inside its scope cover.
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
    std::vector<TreeRef> loop_refs;          // own loops of all program nodes, concatenated
    std::vector<std::uint32_t> loop_begins;  // per program node, and one past the last
  };
  std::int64_t ExtentBelow(NodeId node, DimId dim, std::optional<TreeRef> scope) const;

  std::shared_ptr<const Body> body_;
};

// Floating-point operations of one iteration: each operation counts one per point of its loops,
// except read, write, view, copy and constant (spec B.6). Independent of the schedule.
std::uint64_t FlopCount(const Program& program);

// Bytes of all input and output tensors.
std::uint64_t TensorBytes(const Program& program);

}  // namespace loopfleet::looptree
