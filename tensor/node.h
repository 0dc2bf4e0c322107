#pragma once
// Node: one operation of the lazy graph behind tensors. What it computes never changes; a leaf's
// sizes and values may. One thread at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/looptree/program/program.h"
#include "tensor/buffer.h"
#include "tensor/symbol.h"

namespace loopfleet::tensor {

struct Node;
struct Plan;
using NodePtr = std::shared_ptr<Node>;

// The size of the dim `symbol` of a view, or of its input, equals `expr` over sizes of either.
struct SizeEquation {
  Symbol symbol;
  Expr expr;
};

struct Node {
  enum class Kind : std::uint8_t {
    kLeaf,
    kConstant,  // `value`, rank 0
    kCount,     // rank 0: `value`, multiplied or divided (`op`) by the number of elements along the
                // dims of its input that `index` names
    kPointwise,  // `op` of 1 to 3 inputs, broadcast by symbol
    kReduce,     // `op` over the dims of its input that `symbols` lacks
    kMean,       // the sum over them, divided by their number
    kRename,     // the input's dims under other symbols, by position
    kTranspose,  // the input's dims in another order
    kView,       // element at `symbols` = the input's at `index`, or `value` outside of it
    kConcat,     // the first input along `axis`, then the second
    kReshape,    // the same elements in memory order; dims [axis, axis + count) of the input become
                 // [axis, axis + new_count)
    // Renames, views and reshapes may have a second input: their dims have the sizes of its dims
    // with the same symbols; and a third, so that sizes are solved together with its graph.
    // Elements of these are not read.
  };

  explicit Node(Kind the_kind) : kind(the_kind) {}
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Kind kind;
  looptree::Op op = looptree::Op::kRead;
  bool needs_context = false;  // its sizes may follow from what is computed from it
  std::vector<NodePtr> inputs;
  std::vector<Symbol> symbols;
  double value = 0;
  std::vector<Expr> index;          // kView: per dim of the input; kCount
  std::vector<SizeEquation> sizes;  // kView, kReshape
  std::uint32_t axis = 0;           // kConcat, kReshape
  std::uint32_t count = 0;          // kReshape
  std::uint32_t new_count = 0;      // kReshape
  std::string origin;               // where it was made; "": not traced

  // kLeaf:
  std::vector<std::int64_t> bound;  // sizes; 0: not yet known
  bool has_fixed_sizes = false;     // made with sizes, which its values may not change
  std::shared_ptr<Buffer> data;     // null: no values yet
  std::uint64_t version = 0;        // of `data`; grows over all leaves

  std::vector<std::weak_ptr<Node>> consumers;  // of nodes that need context; may be expired
  std::size_t prune_at = 16;

  // The last result, and the leaves of its graph as it was computed.
  std::shared_ptr<Buffer> result;
  std::vector<std::pair<const Node*, std::uint64_t>> result_of;
  std::vector<std::int64_t> result_shape;
  // If its sizes came from consumers, whose leaves result_of lacks: the result holds as long as
  // this is the plan. Else null.
  std::shared_ptr<const Plan> result_plan;

  // For walks over a graph: the walk's number, and the node's place in it.
  std::uint64_t mark = 0;
  std::uint32_t place = 0;
};

// A new node, with its consumers and origin noted.
NodePtr MakeNode(Node::Kind kind, std::vector<NodePtr> inputs, std::vector<Symbol> symbols);

// Called for each node that is made while it is set; the text tells where, for messages.
void SetOriginOf(std::function<std::string()> origin);

// Whether it is a number that is folded into kernels.
inline bool IsNumber(const Node& node) {
  return node.kind == Node::Kind::kConstant || node.kind == Node::Kind::kCount;
}

// The inputs whose elements the node reads.
std::span<const NodePtr> OperandsOf(const Node& node);
// The tensor that a rename, a view or a reshape has sizes of; null: none.
const Node* SizedLike(const Node& node);

// All nodes that `root` depends on and itself, inputs before their consumers. Sets mark and place.
std::vector<Node*> InOrder(Node& root);
// The same, into a list that keeps its memory.
void InOrder(Node& root, std::vector<Node*>& order);
// The same for several roots.
std::vector<Node*> InOrder(const std::vector<Node*>& roots);

// "Tensor(m, k)", "sum over k of 2 dims": for messages, with the origin if it is traced.
std::string Describe(const Node& node);
std::string Join(const std::vector<Symbol>& symbols);

// The next version of a leaf.
std::uint64_t NextVersion();

}  // namespace loopfleet::tensor
