#pragma once
// VectorLoopEmitter: emits the innermost loop of a nest outside a register block: as vectors if
// what it writes allows it (this is where the annotation `vectorize` is followed), else as scalars.
// Decides which stores bypass the caches. Used by one thread.

#include <cstdint>
#include <set>

#include "worker/cpu/body_emitter.h"
#include "worker/cpu/loop_state.h"
#include "worker/lowering/loop_nest.h"

namespace loopfleet::worker {

class VectorLoopEmitter {
 public:
  // `effective`: gets the loops whose annotation `vectorize` changed the code.
  VectorLoopEmitter(llvm::IRBuilderBase& builder, const KernelPlan& plan, const VectorShape& shape,
                    LoopState& state, std::set<looptree::TreeRef>& effective)
      : builder_(builder),
        plan_(plan),
        shape_(shape),
        state_(state),
        bodies_(builder, shape, state),
        effective_(effective) {}

  void Emit(const Nest& nest);
  bool streamed() const { return streamed_; }  // some stores bypass the caches

 private:
  bool Vectorises(const Nest& nest, LoopId loop);
  // The vectors of the elements from `start`, a multiple of the vectors' width, up to `extent`.
  void EmitPieces(const Nest& nest, LoopId loop, std::int64_t extent, std::int64_t start);
  void EmitVectors(const Nest& nest, LoopId loop, llvm::Value* extent);
  void EmitScalars(const Nest& nest, LoopId loop, llvm::Value* start, llvm::Value* limit);
  void EmitLanes(const Nest& nest, std::int64_t offset, const Lanes& lanes);
  bool HasUnevenLanes(const Nest& nest, LoopId loop) const;
  bool Streams(const Nest& nest, LoopId loop) const;

  llvm::IRBuilderBase& builder_;
  const KernelPlan& plan_;
  const VectorShape& shape_;
  LoopState& state_;
  BodyEmitter bodies_;
  std::set<looptree::TreeRef>& effective_;
  bool streamed_ = false;
};

}  // namespace loopfleet::worker
