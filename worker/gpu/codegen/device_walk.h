#pragma once
// DeviceWalk: the current position of one stage's code in its loops: for each access, the address
// at this point; for each dim, the elements left. Loops divided among threads are entered at any
// offset; loops that a thread runs itself are emitted here. Also emits the operations of a body at
// the current point. Used by one thread.
//
// Indices are 32 bits wide where they are known to fit (a kernel's memory is limited to far fewer
// elements). Addresses are 64 bits wide.

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "worker/gpu/codegen/device_plan.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/unroller.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace loopfleet::worker {

class DeviceWalk {
 public:
  using Values = std::vector<llvm::Value*>;

  // `buffers`: the start of each plan buffer; null for a buffer that the stage does not use or that
  // is in stage.registers.
  DeviceWalk(llvm::IRBuilderBase& builder, const KernelPlan& plan, const Stage& stage,
             const Values& buffers, Unroller& unroller);

  // ---- loops
  llvm::Value* Constant(std::int64_t value) const;  // i32
  llvm::Value* extent(looptree::DimId dim) const { return extents_[dim]; }
  // Enters one iteration: the code that follows is at `offset` of the loop. Leave undoes this.
  struct Entered {
    LoopId loop = 0;
    llvm::Value* extent = nullptr;
    llvm::Value* offset = nullptr;
    std::vector<std::pair<const Access*, std::pair<llvm::Value*, std::int64_t>>> places;
  };
  Entered Enter(LoopId loop, llvm::Value* offset);
  void Leave(const Entered& entered);
  // Emits the whole loop serially, unrolled if it is annotated so, as far as the unroller allows.
  void RunLoop(LoopId loop, const std::function<void()>& iteration);
  // for (i = start; i < limit; i += step). Unrolled if the numbers are constants and the loop has
  // only one iteration or `unroll` is kYes. kNever: the assembler must not unroll it either.
  enum class Unroll { kNo, kYes, kNever };
  void Count(llvm::Value* start, llvm::Value* limit, llvm::Value* step, Unroll unroll,
             const std::function<void(llvm::Value*)>& iteration);
  // Emits `then` so that it runs only if `condition` holds. Null: always.
  void If(llvm::Value* condition, const std::function<void()>& then);
  // a && b. Null means true.
  llvm::Value* And(llvm::Value* a, llvm::Value* b) const;

  // Numbers the combined iterations of `loops`, the innermost fastest, and enters iteration
  // `number`. Returns the condition that it exists. Null: always.
  llvm::Value* EnterNumbered(const std::vector<const LoopStep*>& loops, llvm::Value* number,
                             std::vector<Entered>& entered);

  // ---- memory
  llvm::Value* Pointer(const Access& access, std::int64_t elements = 0) const;
  llvm::Value* Load(const Access& access);
  // The value of an operand, its guards and quotients included. Every loop around it was entered.
  llvm::Value* LoadGuarded(const Access& access);
  void Store(llvm::Value* value, const Access& access);

  // ---- operations
  // Returns the value of a statement's operand at this point.
  using LoadOperand = std::function<llvm::Value*(const Access& access)>;
  // Emits a body without its stores and its reduction. A statement's value is null for the
  // reduction and for a product fused into it.
  struct BodyValues {
    Values values;
    Values last_operands;         // of the reduction, if any
    llvm::Value* left = nullptr;  // factors of the fused product, which is not rounded
    llvm::Value* right = nullptr;
  };
  BodyValues Evaluate(const Body& body, const LoadOperand& load);
  // The accumulator's next value.
  llvm::Value* Accumulate(const Statement& reduction, const BodyValues& values,
                          llvm::Value* accumulator);
  // Emits the complete body: loads, operations, stores, and the reduction in memory.
  void RunBody(const Body& body);
  // The condition that all loops in `once` are at their first iteration. Null: always.
  llvm::Value* AtFirst(const std::vector<LoopId>& once) const;

  // A variable of the thread. PromoteVariables turns all of them into registers.
  llvm::Value* NewVariable(llvm::Value* initial);
  llvm::Value* Get(llvm::Value* variable) const;
  void Set(llvm::Value* variable, llvm::Value* value) const;
  void PromoteVariables();

 private:
  struct Place {
    llvm::Value* pointer = nullptr;  // null: registers
    std::int64_t elements = 0;
  };
  using Iteration = std::function<void(llvm::Value* offset)>;
  // Writes out `copies` of the iterations below `extent` in each iteration of a loop. Those left
  // over follow as a loop.
  void CountPartlyUnrolled(std::int64_t extent, std::int64_t step, std::int64_t copies,
                           const Iteration& iteration);
  void AddAccesses(const std::vector<Step>& steps, const Values& buffers);
  void AddAccess(const Access& access, const Values& buffers);
  // offset * stride, 64 bits wide, for an offset below `limit`.
  llvm::Value* Distance(llvm::Value* offset, std::int64_t stride, std::int64_t limit) const;
  llvm::Value* Register(const Access& access);
  llvm::Value* IndexAt(const PlanIndex& index) const;
  llvm::Value* Holds(const AccessGuard& guard) const;
  // `inside` if all guards hold, computed only then; otherwise what the first that fails says.
  llvm::Value* Guarded(const std::vector<AccessGuard>& guards,
                       const std::function<llvm::Value*()>& inside);

  llvm::IRBuilderBase& builder_;
  const KernelPlan& plan_;
  const Stage& stage_;
  Unroller& unroller_;
  Values extents_;  // by DimId
  Values offsets_;  // by LoopId
  std::map<const Access*, Place> places_;
  std::map<LoopId, std::vector<std::pair<const Access*, std::int64_t>>> users_;
  std::map<std::pair<BufferId, std::int64_t>, llvm::Value*> registers_;
  Values variables_;
};

}  // namespace loopfleet::worker
