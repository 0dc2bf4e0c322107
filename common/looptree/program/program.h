#pragma once
// Program: what is computed, with no order: a directed acyclic graph of operations over named
// dimensions, all in float32. A value: nodes refer to each other and to dimensions by index.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::looptree {

using DimId = std::uint32_t;   // index into Program::dims
using NodeId = std::uint32_t;  // index into Program::nodes

// Numbered as in IR text: loop_tool's numbers up to 17, our own from 32 on.
enum class Op : std::uint8_t {
  kConstant = 0,
  kWrite = 1,
  kRead = 2,
  kView = 3,
  kCopy = 4,
  kAdd = 5,
  kSubtract = 6,
  kMultiply = 7,
  kDivide = 8,
  kMin = 9,
  kMax = 10,
  kLog = 11,
  kExp = 12,
  kSqrt = 13,
  kAbs = 14,
  kNegate = 15,
  kReciprocal = 16,
  kName = 17,
  kGreater = 32,  // 1 or 0, as are the next two
  kGreaterEqual = 33,
  kEqual = 34,
  kSelect = 35,  // the second input where the first is not 0, else the third
  kTanh = 36,
  kErf = 37,
  kSin = 38,
  kCos = 39,
  kFloor = 40,
  kCeil = 41,
  kRound = 42,  // half to even
  kSign = 43,   // 1, 0 or -1; 0 for NaN
  kPower = 44,
};

// The operation with this number; nullopt: there is none.
std::optional<Op> OpOf(std::int64_t number);
std::string_view OpName(Op op);  // "multiply", as in tree text
bool IsArithmetic(Op op);        // false for read, write, view, copy, constant

inline constexpr std::size_t kMaxNameBytes = 64;  // of a dimension

struct Dim {
  std::string name;
  std::int64_t size = 0;  // >= 1
  friend bool operator==(const Dim&, const Dim&) = default;
};

// One index of a view's input as an affine function of the view's own dimensions:
// input index along `input_dim` = (constant + sum of coefficient * (index along dim)) / divisor.
// A convolution's window is h = 0 + 1*oh + 1*kh.
//
// Not guarded: the index is always inside the input, and the divisor is 1. Guarded: where the index
// is not whole or not inside, the view's element is Node::outside, and nothing is read.
struct AffineTerm {
  DimId dim = 0;
  std::int64_t coefficient = 0;
  friend bool operator==(const AffineTerm&, const AffineTerm&) = default;
};
struct ViewIndex {
  DimId input_dim = 0;
  std::vector<AffineTerm> terms;
  std::int64_t constant = 0;
  std::int64_t divisor = 1;  // >= 1
  bool guarded = false;
  friend bool operator==(const ViewIndex&, const ViewIndex&) = default;
};

struct Node {
  Op op = Op::kRead;
  std::vector<NodeId> inputs;
  std::vector<DimId> dims;  // of the result, whose layout is row-major in this order
  // kView only: one per dim of the input. Dims of the view that no index names repeat the input.
  std::vector<ViewIndex> view;
  double outside = 0;   // kView only: the elements that guarded indices leave out
  double constant = 0;  // kConstant only
  friend bool operator==(const Node&, const Node&) = default;
};

struct Program {
  std::vector<Dim> dims;
  std::vector<Node> nodes;
  std::vector<NodeId> inputs;   // reads, in calling order
  std::vector<NodeId> outputs;  // writes, in calling order
  friend bool operator==(const Program&, const Program&) = default;

  // The dimensions that `node` reduces over: its inputs have them, its result does not. Empty for a
  // view.
  std::vector<DimId> ReducedDims(NodeId node) const;
  bool IsReduction(NodeId node) const { return !ReducedDims(node).empty(); }
  // Elements of the node's whole result.
  std::int64_t ElementCount(NodeId node) const;
};

}  // namespace loopfleet::looptree
