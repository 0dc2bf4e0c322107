#pragma once
// ShapeSolver: finds the sizes of all dims of a graph. A slot is one dim of one node. Slots are
// united where they must have one size; views and reshapes relate sizes by equations. Sizes come
// from leaves, and pass in both directions.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tensor/node.h"

namespace loopfleet::tensor {

class ShapeSolver {
 public:
  // `nodes`: inputs before consumers, as InOrder gives them, right after it did. Throws
  // TensorError: kSizeConflict; kShape for a size below 1.
  explicit ShapeSolver(const std::vector<Node*>& nodes);

  // 0: unknown.
  std::int64_t SizeOf(const Node& node, std::size_t axis) const;
  std::vector<std::int64_t> ShapeOf(const Node& node) const;
  bool Knows(const Node& node) const;
  // Names the unknown dims of `node` and who could tell them. Throws kSizeUnknown.
  [[noreturn]] void ThrowUnknown(const Node& node) const;

 private:
  using Slot = std::uint32_t;
  struct Class {
    Slot parent = 0;
    std::int64_t size = 0;         // of a root; 0: unknown
    const Node* source = nullptr;  // who gave it
  };

  Slot SlotOf(const Node& node, std::size_t axis) const {
    return offsets_[node.place] + static_cast<Slot>(axis);
  }
  Slot RootOf(Slot slot) const;
  void Unite(Slot a, Slot b);
  void Set(Slot slot, std::int64_t size, const Node& source);
  void UniteOf(const Node& node);
  // Dims of the same symbol.
  void UniteBySymbol(const Node& node, const Node& other);
  bool SolveEquations(const Node& node);  // whether anything became known
  bool SolveView(const Node& node);
  bool SolveReshape(const Node& node);
  bool SolveSizes(const Node& node);
  bool SolveConcat(const Node& node);
  bool SolveBySymbol();
  // The slot that `symbol` means in an equation of `node`: one of its own dims, or of its input's.
  Slot SlotNamed(const Node& node, const Symbol& symbol) const;
  std::string NameOf(Slot slot) const;

  const std::vector<Node*>& nodes_;
  std::vector<Slot> offsets_;
  mutable std::vector<Class> classes_;
};

// The axis of `symbol`; -1: none.
int AxisOf(const std::vector<Symbol>& symbols, const Symbol& symbol);

}  // namespace loopfleet::tensor
