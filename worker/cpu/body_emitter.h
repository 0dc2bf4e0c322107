#pragma once
// BodyEmitter: the operations of a body at one point of the loops, or at several points along one
// loop at once, as lanes of a vector.

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "worker/cpu/loop_state.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/loop_nest.h"

namespace loopfleet::worker {

// Elements beside the one that the loops stand at: by loop, how far.
using Displacement = std::vector<std::pair<LoopId, std::int64_t>>;

// Which elements of `loop` the lanes of a value are; one lane: just the element at the
// displacement.
struct Lanes {
  unsigned width = 1;
  unsigned active = 1;          // the first so many, as far as is known here
  LoopId loop = 0;              // only with width > 1
  llvm::Value* mask = nullptr;  // <width x i1>; null: all
  bool streams = false;         // whole vectors are stored past the caches; they are aligned then
};

// What was loaded already and can be used again, within straight-line code.
class LoadCache {
 public:
  llvm::Value*& At(const Access& access, std::int64_t elements, const Lanes& lanes) {
    return loaded_[{&access, elements, lanes.width, lanes.mask}];
  }

 private:
  // Only looked up, never walked: the order of addresses leaves no trace in the code.
  std::map<std::tuple<const Access*, std::int64_t, unsigned, llvm::Value*>, llvm::Value*> loaded_;
};

class BodyEmitter {
 public:
  BodyEmitter(llvm::IRBuilderBase& builder, const LoopState& state)
      : builder_(builder), state_(state) {}

  // Runs the body. Its reduction, if it has one, is combined into memory, or into `*accumulator` if
  // that is given.
  void Emit(const Body& body, const Displacement& displacement, const Lanes& lanes,
            LoadCache& cache, llvm::Value** accumulator = nullptr);

  llvm::Value* Load(const Access& access, const Displacement& displacement, const Lanes& lanes);
  void Store(llvm::Value* value, const Access& access, const Displacement& displacement,
             const Lanes& lanes);

  // a `op` b for an operation that reduces.
  llvm::Value* Combine(looptree::Op op, llvm::Value* a, llvm::Value* b);
  // All lanes of `vector` combined into one.
  llvm::Value* CombineLanes(looptree::Op op, llvm::Value* vector);
  llvm::Value* Splat(double value, unsigned width);
  // The mask of the first `active` of `width` lanes; null for all.
  llvm::Value* ConstantMask(unsigned width, unsigned active);
  // The same for a number known when the kernel runs, below `width`.
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
  void StoreLanes(llvm::Value* value, const Access& access, std::int64_t elements,
                  std::int64_t stride, const Lanes& lanes);

  llvm::IRBuilderBase& builder_;
  const LoopState& state_;
};

}  // namespace loopfleet::worker
