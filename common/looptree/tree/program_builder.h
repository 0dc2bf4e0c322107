#pragma once
// ProgramBuilder: builds a program operation by operation, then gives it loops.
//
//   ProgramBuilder b;
//   const DimId m = b.Dim("m", 33), k = b.Dim("k", 64);
//   b.Write(b.Apply(Op::kAdd, {b.Read({m, k})}, {m}));
//   LF_TRY(LoopTree tree, std::move(b).Build({{m, 33}, {k, 64}}, limits));

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "common/looptree/program/limits.h"
#include "common/looptree/program/program.h"
#include "common/looptree/program/rejection.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

class ProgramBuilder {
 public:
  // A loop over a piece of a dimension. The sizes of one dimension's loops multiply to its size.
  struct Loop {
    DimId dim = 0;
    std::int64_t size = 1;
  };

  DimId Dim(std::string name, std::int64_t size);
  NodeId Read(std::vector<DimId> dims);
  NodeId View(NodeId input, std::vector<DimId> dims, std::vector<ViewIndex> index);
  // Elements whose index is not whole or not inside the input are `outside`; all indices are
  // guarded.
  NodeId GuardedView(NodeId input, std::vector<DimId> dims, std::vector<ViewIndex> index,
                     double outside = 0);
  // A number, the same for all points of `dims`.
  NodeId Constant(double value, std::vector<DimId> dims = {});
  // A reduction if the inputs have dims that `dims` lacks.
  NodeId Apply(Op op, std::vector<NodeId> inputs, std::vector<DimId> dims);
  NodeId Write(NodeId result);  // in the result's own layout
  NodeId Write(NodeId result, std::vector<DimId> dims);

  const Program& program() const { return program_; }

  // Each operation gets the loops over its dims, in the given order; reads, views and constants get
  // none.
  // Checks what LoopTree::Build checks.
  Checked<LoopTree> Build(std::span<const Loop> order, const Limits& limits) &&;
  // One loop per dim, in the order of declaration.
  Checked<LoopTree> Build(const Limits& limits) &&;

 private:
  NodeId Add(Node node);
  Program program_;
};

}  // namespace loopfleet::looptree
