#pragma once
// SumEmitter: the code of a stage that adds up long sums (docs/LOWERING.md, "GPU", "Sums").

#include "worker/gpu/device_abi.h"
#include "worker/gpu/device_plan.h"
#include "worker/gpu/device_walk.h"
#include "worker/gpu/quad_emitter.h"

namespace loopfleet::worker {

class SumEmitter {
 public:
  // `partials`: where the sums of single blocks are; null if there are none.
  SumEmitter(llvm::IRBuilderBase& builder, DeviceAbi& abi, const KernelPlan& plan,
             const Stage& stage, const SumMapping& sum, llvm::Value* partials, DeviceWalk& walk)
      : builder_(builder),
        abi_(abi),
        stage_(stage),
        sum_(sum),
        partials_(partials),
        walk_(walk),
        quads_(builder, plan, stage, walk) {}

  void Emit();

 private:
  void AddTerms(llvm::Value* block_of_point, llvm::Value* accumulator);
  void AddTerm(llvm::Value* number, llvm::Value* accumulator);
  void AddPartials(llvm::Value* first, llvm::Value* accumulator);
  // Of all threads of the block; the first of them has it in the end.
  llvm::Value* Together(llvm::Value* value);
  llvm::Value* Element(llvm::Value* start, llvm::Value* index) const;

  llvm::IRBuilderBase& builder_;
  DeviceAbi& abi_;
  const Stage& stage_;
  const SumMapping& sum_;
  llvm::Value* const partials_;
  DeviceWalk& walk_;
  QuadEmitter quads_;
};

}  // namespace loopfleet::worker
