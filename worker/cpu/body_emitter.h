#pragma once
// BodyEmitter: emits the operations of a body at one point of the loops, or at several points along
// one loop as the lanes of a vector. Used by one thread.

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "worker/cpu/loop_state.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/loop_nest.h"
#include "worker/lowering/vector_shape.h"

namespace loopfleet::worker {

// An element's distance from the current point of the loops, in elements along each loop.
using Displacement = std::vector<std::pair<LoopId, std::int64_t>>;

// The elements of `loop` that the lanes of a value hold. With one lane: the element at the
// displacement.
struct Lanes {
  unsigned width = 1;
  unsigned active = 1;          // leading lanes in use, if known at compile time
  LoopId loop = 0;              // only with width > 1
  llvm::Value* mask = nullptr;  // <width x i1>; null: all
  bool streams = false;         // whole vectors bypass the caches when stored; they are aligned
};

// Values already loaded, for reuse within straight-line code.
class LoadCache {
 public:
  // The value of an access at a displacement; null: not loaded yet.
  llvm::Value*& At(const Access& access, const Displacement& displacement, const Lanes& lanes);

 private:
  // Never iterated, so the order of addresses does not affect the emitted code.
  std::map<std::tuple<const Access*, std::int64_t, unsigned, llvm::Value*>, llvm::Value*> loaded_;
  // With guards, the same element may be inside at one displacement and outside at another.
  std::map<std::tuple<const Access*, std::vector<std::int64_t>, unsigned, llvm::Value*>,
           llvm::Value*>
      guarded_;
};

class BodyEmitter {
 public:
  BodyEmitter(llvm::IRBuilderBase& builder, const VectorShape& shape, const LoopState& state)
      : builder_(builder), shape_(shape), state_(state) {}

  // Emits the body. A reduction is combined into `*accumulator` if given, otherwise into memory.
  void Emit(const Body& body, const Displacement& displacement, const Lanes& lanes,
            LoadCache& cache, llvm::Value** accumulator = nullptr);

  llvm::Value* Load(const Access& access, const Displacement& displacement, const Lanes& lanes);
  void Store(llvm::Value* value, const Access& access, const Displacement& displacement,
             const Lanes& lanes);

  // a `op` b, for a reducing operation.
  llvm::Value* Combine(looptree::Op op, llvm::Value* a, llvm::Value* b);
  // All lanes of `vector` combined into one.
  llvm::Value* CombineLanes(looptree::Op op, llvm::Value* vector);
  llvm::Value* Splat(double value, unsigned width);
  // The mask of the first `active` of `width` lanes. Null: all lanes.
  llvm::Value* ConstantMask(unsigned width, unsigned active);
  // The same for an `active` known only at run time and less than `width`.
  llvm::Value* RuntimeMask(unsigned width, llvm::Value* active);

 private:
  using Values = std::vector<llvm::Value*>;
  Values OperandsOf(const Statement& statement, const Values& earlier,
                    const Displacement& displacement, const Lanes& lanes, LoadCache& cache);
  llvm::Value* Compute(const Statement& statement, const Values& operands);
  llvm::Value* Accumulate(const Statement& statement, const Values& operands,
                          const std::optional<std::pair<llvm::Value*, llvm::Value*>>& product,
                          llvm::Value* accumulator);
  llvm::Value* LoadLanes(const Access& access, std::int64_t elements, std::int64_t stride,
                         const Lanes& lanes);
  // An operand with guards or quotients.
  llvm::Value* LoadGuarded(const Access& access, const Displacement& displacement,
                           const Lanes& lanes);
  // Side by side, or all the same; where some lanes do not hold their guards, under a mask.
  llvm::Value* LoadUnderGuards(const Access& access, const Displacement& displacement,
                               const Lanes& lanes);
  // The element of one lane. Reads the first element of the buffer in place of one outside.
  llvm::Value* LoadLane(const Access& access, const Displacement& displacement, const Lanes& lanes,
                        unsigned lane);
  // `value` where the guards hold.
  llvm::Value* Guarded(llvm::Value* value, const std::vector<AccessGuard>& guards,
                       const Displacement& displacement, const Lanes& lanes);
  // Whether the guard holds, for one lane or, as a vector, for all.
  llvm::Value* Holds(const AccessGuard& guard, const Displacement& displacement, const Lanes& lanes,
                     unsigned lane);
  llvm::Value* HoldsInLanes(const AccessGuard& guard, const Displacement& displacement,
                            const Lanes& lanes);
  // The elements that the quotients add to the address of a lane.
  llvm::Value* QuotientsOf(const Access& access, const Displacement& displacement,
                           const Lanes& lanes, unsigned lane);
  // What `emit` emits, where that is fast and accurate, or calls of a function of the C library.
  llvm::Value* Function(const char* name, llvm::Value* (*emit)(llvm::IRBuilderBase&, llvm::Value*),
                        const Values& operands);
  // Calls a function of the C library for each lane.
  llvm::Value* CallEach(const char* name, const Values& operands);
  llvm::Value* Rounded(looptree::Op op, llvm::Value* x);
  void StoreLanes(llvm::Value* value, const Access& access, std::int64_t elements,
                  std::int64_t stride, const Lanes& lanes);

  llvm::IRBuilderBase& builder_;
  const VectorShape& shape_;
  const LoopState& state_;
};

}  // namespace loopfleet::worker
