#pragma once
// DeviceWalk: where the code of one stage stands in its loops: for each access the address that the
// loops entered so far lead to, for each dim how many elements are left. Loops are entered at any
// offset, as threads share them out; those that a thread runs itself are emitted here too. And the
// operations of a body, at the point where the walk stands.
//
// Indices are 32 bits wide on the way (a kernel's memory is limited far below that many elements)
// wherever the numbers are known to fit, addresses 64.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "worker/gpu/codegen/device_plan.h"
#include "worker/lowering/kernel_plan.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace loopfleet::worker {

class DeviceWalk {
 public:
  using Values = std::vector<llvm::Value*>;

  // `buffers`: the start of each plan buffer that the stage uses, else null; those of
  // stage.registers are null as well.
  DeviceWalk(llvm::IRBuilderBase& builder, const KernelPlan& plan, const Stage& stage,
             const Values& buffers);

  // ---- loops
  llvm::Value* Constant(std::int64_t value) const;  // i32
  llvm::Value* extent(looptree::DimId dim) const { return extents_[dim]; }
  // Takes one iteration: what follows stands at `offset` of the loop. Undone by Leave.
  struct Entered {
    LoopId loop = 0;
    llvm::Value* extent = nullptr;
    llvm::Value* offset = nullptr;
    std::vector<std::pair<const Access*, std::pair<llvm::Value*, std::int64_t>>> places;
  };
  Entered Enter(LoopId loop, llvm::Value* offset);
  void Leave(const Entered& entered);
  // The whole loop, one iteration after the other.
  void RunLoop(LoopId loop, const std::function<void()>& iteration);
  // for (i = start; i < limit; i += step). Written out if the numbers are constants and one
  // iteration is all there is, or `unroll`. kNever: nor is the assembler to write it out.
  enum class Unroll { kNo, kYes, kNever };
  void Count(llvm::Value* start, llvm::Value* limit, llvm::Value* step, Unroll unroll,
             const std::function<void(llvm::Value*)>& iteration);
  // Emits `then` to be run only where `condition` holds; null: always.
  void If(llvm::Value* condition, const std::function<void()>& then);
  // Both; null stands for true.
  llvm::Value* And(llvm::Value* a, llvm::Value* b) const;

  // Shares out the iterations of loops, numbered through with the innermost fastest, and enters
  // that with the given number. Gives the condition that there is one; null: always.
  llvm::Value* EnterNumbered(const std::vector<const LoopStep*>& loops, llvm::Value* number,
                             std::vector<Entered>& entered);

  // Annotated loops that were written out.
  const std::set<looptree::TreeRef>& effective() const { return effective_; }

  // ---- memory
  llvm::Value* Pointer(const Access& access, std::int64_t elements = 0) const;
  llvm::Value* Load(const Access& access);
  void Store(llvm::Value* value, const Access& access);

  // ---- operations
  // What operand `operand` of a statement is here; the default loads it.
  using LoadOperand = std::function<llvm::Value*(const Access& access)>;
  // Runs a body without its stores and its reduction: gives each statement's value, or null for a
  // product that the reduction takes as it is.
  struct BodyValues {
    Values values;
    Values last_operands;         // of the reduction, if there is one
    llvm::Value* left = nullptr;  // of the product that is not rounded
    llvm::Value* right = nullptr;
  };
  BodyValues Evaluate(const Body& body, const LoadOperand& load);
  // The reduction's next value after `accumulator`.
  llvm::Value* Accumulate(const Statement& reduction, const BodyValues& values,
                          llvm::Value* accumulator);
  // The body as it stands: loads, operations, stores, reduction in memory.
  void RunBody(const Body& body);
  // Of the loops in `once`, those entered stand at their first iteration; null: all do.
  llvm::Value* AtFirst(const std::vector<LoopId>& once) const;

  // A variable of the thread. All of them become registers when the function is done.
  llvm::Value* NewVariable(llvm::Value* initial);
  llvm::Value* Get(llvm::Value* variable) const;
  void Set(llvm::Value* variable, llvm::Value* value) const;
  void PromoteVariables();

 private:
  struct Place {
    llvm::Value* pointer = nullptr;  // null: registers
    std::int64_t elements = 0;
  };
  void AddAccesses(const std::vector<Step>& steps, const Values& buffers);
  void AddAccess(const Access& access, const Values& buffers);
  // offset * stride, 64 bits wide, for an offset below `limit`.
  llvm::Value* Distance(llvm::Value* offset, std::int64_t stride, std::int64_t limit) const;
  llvm::Value* Register(const Access& access);

  llvm::IRBuilderBase& builder_;
  const KernelPlan& plan_;
  const Stage& stage_;
  Values extents_;  // by DimId
  Values offsets_;  // by LoopId
  std::map<const Access*, Place> places_;
  std::map<LoopId, std::vector<std::pair<const Access*, std::int64_t>>> users_;
  std::map<std::pair<BufferId, std::int64_t>, llvm::Value*> registers_;
  Values variables_;
  std::set<looptree::TreeRef> effective_;
};

}  // namespace loopfleet::worker
