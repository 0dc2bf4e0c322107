#pragma once
// ParallelEmitter: emits a group of perfectly nested parallel loops as a separate function that
// runs a part of the iterations, and a call that runs all parts
// (kernel/parallel_for.h).
//
// The iterations of the group are numbered consecutively, and a part is a range of numbers. Within
// a part, the innermost loop of the group is an ordinary loop over fewer elements, so vectors and
// register blocks are the same as without threads. Used by one thread.

#include <functional>
#include <vector>

#include "worker/cpu/loop_state.h"
#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

class ParallelEmitter {
 public:
  // Emits the loop over what is left of its dim, as a serial loop.
  using EmitLoop = std::function<void(const LoopStep&)>;

  // `parallel_for`: the address of the ParallelFor passed to the kernel.
  ParallelEmitter(llvm::IRBuilderBase& builder, const KernelPlan& plan, LoopState& state,
                  llvm::Value* parallel_for)
      : builder_(builder), plan_(plan), state_(state), parallel_for_(parallel_for) {}

  void Emit(const LoopStep& outermost, const EmitLoop& emit);

 private:
  using Group = std::vector<const LoopStep*>;  // outermost first
  struct Part {
    llvm::Value* begin = nullptr;
    llvm::Value* end = nullptr;
  };

  Group GroupAt(const LoopStep& outermost) const;
  void EmitPart(const Group& group, std::size_t level, const Part& part, const EmitLoop& emit);
  std::int64_t MostIterations(const LoopStep& step) const;
  llvm::Value* IterationsHere(const LoopStep& step) const;
  llvm::Value* Smaller(llvm::Value* a, llvm::Value* b);

  llvm::IRBuilderBase& builder_;
  const KernelPlan& plan_;
  LoopState& state_;
  llvm::Value* parallel_for_;
};

}  // namespace loopfleet::worker
