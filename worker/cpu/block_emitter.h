#pragma once
// BlockEmitter: emits a register block. Reduced loops stay loops, every other loop of the block is
// unrolled, and the accumulators stay in registers from its start to its end. Used by one thread.

#include <vector>

#include "worker/cpu/body_emitter.h"
#include "worker/cpu/loop_state.h"
#include "worker/lowering/loop_nest.h"

namespace loopfleet::worker {

class BlockEmitter {
 public:
  BlockEmitter(llvm::IRBuilderBase& builder, const KernelPlan& plan, const VectorShape& shape,
               LoopState& state)
      : builder_(builder),
        plan_(plan),
        shape_(shape),
        state_(state),
        bodies_(builder, shape, state) {}

  // The initial value of the accumulators.
  enum class Start { kIdentity, kMemory };
  void Emit(const Nest& nest, const RegisterBlock& block, Start start);

 private:
  using Values = LoopState::Values;
  // One element of the target, or a register of them.
  struct Slot {
    Displacement displacement;
    Lanes lanes;
  };
  // A block being emitted. If its lanes reduce, each slot has a vector of partial results and, with
  // `scalar_rest`, a scalar one as well: Values holds all vectors, then all scalars.
  struct Work {
    const Nest& nest;
    const RegisterBlock& block;
    const Statement& reduction;
    Start start;
    std::vector<Slot> slots;
    bool masked_rest = false;  // the elements that do not fill a vector run under a mask
    bool scalar_rest = false;  // the elements that do not fill a vector run one by one
    LoadCache invariant;       // loop-invariant operands, loaded before the block's loops
  };

  std::vector<Slot> SlotsOf(const Nest& nest, const RegisterBlock& block);
  void DecideRest(Work& work) const;
  void LoadInvariants(Work& work);
  Values InitialValues(const Work& work);
  Values EmitReduced(const Work& work, std::size_t level, const Values& accumulators);
  // The innermost reduced loop, from 0 up to a multiple of `step` elements. Uses several copies of
  // the accumulators where a single copy would stall the arithmetic units.
  Values EmitInterleaved(const Work& work, std::int64_t step, const Values& accumulators);
  Values EmitReducedLanes(const Work& work, const Values& accumulators);
  Values EmitMaskedRest(const Work& work, llvm::Value* start, Values vectors);
  Values EmitTile(const Work& work, const Displacement& along, const Lanes* lanes,
                  Values accumulators);
  void StoreResults(const Work& work, const Values& accumulators);
  Lanes ReducingLanes(const Work& work) const;
  llvm::Value* RoundedDown(llvm::Value* extent, std::int64_t power_of_two);

  llvm::IRBuilderBase& builder_;
  const KernelPlan& plan_;
  const VectorShape& shape_;
  LoopState& state_;
  BodyEmitter bodies_;
};

}  // namespace loopfleet::worker
