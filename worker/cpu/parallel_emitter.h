#pragma once
// ParallelEmitter: a parallel loop, with those that it holds and nothing else, as a function of its
// own that runs a part of the iterations, and a call that has all parts run
// (worker/verification/parallel_for.h).
//
// The iterations of the group are numbered through, and a part is a range of numbers. Within it the
// innermost loop of the group is an ordinary loop over fewer elements, so vectors and register
// blocks come out as they would without threads.

#include <functional>
#include <vector>

#include "worker/cpu/loop_state.h"
#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

class ParallelEmitter {
 public:
  // Emits the loop over what is left of its dim, one iteration after the other.
  using EmitLoop = std::function<void(const LoopStep&)>;

  // `parallel_for`: the address of the ParallelFor that the kernel was given.
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
