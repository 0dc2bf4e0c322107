#pragma once
// TileEmitter: emits the code of a stage that is a grid of tiles (docs/LOWERING.md, "GPU",
// "Tiles"). Used by one thread.

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "worker/gpu/codegen/device_abi.h"
#include "worker/gpu/codegen/device_plan.h"
#include "worker/gpu/codegen/device_walk.h"

namespace loopfleet::worker {

class TileEmitter {
 public:
  TileEmitter(llvm::IRBuilderBase& builder, DeviceAbi& abi, const KernelPlan& plan,
              const TileMapping& tile, DeviceWalk& walk)
      : builder_(builder), abi_(abi), plan_(plan), tile_(tile), walk_(walk) {}

  void Emit();

 private:
  // An element of a dim: base + constant. Always inside the dim: where the tile hangs over its end,
  // the last element replaces those beyond.
  struct Position {
    llvm::Value* base = nullptr;  // i32
    std::int64_t constant = 0;
  };
  // The position of this block and thread on one axis.
  struct Here {
    llvm::Value* start = nullptr;   // the block's first element
    llvm::Value* thread = nullptr;  // index of this thread along the axis
  };
  using Loaded = std::map<std::tuple<const Access*, std::int64_t, std::int64_t>, llvm::Value*>;

  void EnterBlock();
  bool HangsOver(const TileAxis& axis) const { return axis.extent % axis.block != 0; }
  // The position of the thread's element `index`, or with `width` 4 of the four starting there.
  Position PositionOf(const TileAxis& axis, const Here& here, std::int64_t index,
                      std::int64_t width) const;
  llvm::Value* InRange(const TileAxis& axis, const Here& here, std::int64_t index) const;
  std::int64_t LocalConstant(const TileAxis& axis, std::int64_t index) const;
  std::int64_t StrideAlong(const TileAxis& axis, const Access& access) const;

  // One thread's share of a staged operand's slice: one element, or four contiguous ones, moved
  // from memory through registers to shared memory.
  struct Portion {
    // Address in the first slice. If `step` is given, the address at the operand's first step.
    llvm::Value* from = nullptr;
    llvm::Value* step = nullptr;     // within the slice; null: included in `from`
    std::int64_t further = 0;        // elements added to `from`
    llvm::Value* place = nullptr;    // in shared memory, in elements
    std::int64_t place_further = 0;  // elements added to `place`
    llvm::Value* exists = nullptr;   // condition; null: always
    std::vector<llvm::Value*> held;  // the registers
  };
  struct Slice {
    const StagedOperand* staged = nullptr;
    std::vector<Portion> portions;
  };
  // A step of the slice in shared memory: first + constant.
  struct Depth {
    llvm::Value* first = nullptr;
    std::int64_t constant = 0;
  };

  void RunReduced(std::size_t level);
  void RunStaged(LoopId innermost);
  Slice SliceOf(const StagedOperand& staged);
  void Fetch(const Slice& slice, llvm::Value* depth_start, llvm::Value* depth_extent);
  void Put(const Slice& slice);
  void Step(const Depth* depth);
  llvm::Value* Operand(const Access& access, std::int64_t x, std::int64_t y, const Depth* depth,
                       Loaded& loaded);
  llvm::Value* FromShared(const StagedOperand& staged, std::int64_t index, const Depth& depth,
                          Loaded& loaded);
  llvm::Value* Pointer(const Access& access, const Position& x, const Position& y) const;
  void StoreAll(const std::function<llvm::Value*(std::int64_t x, std::int64_t y)>& value);
  llvm::Value* Smaller(llvm::Value* a, llvm::Value* b) const;
  llvm::Value* Wide(llvm::Value* narrow, std::int64_t stride) const;

  llvm::IRBuilderBase& builder_;
  DeviceAbi& abi_;
  const KernelPlan& plan_;
  const TileMapping& tile_;
  DeviceWalk& walk_;
  Here x_;
  Here y_;
  llvm::Value* shared_ = nullptr;
  std::map<const StagedOperand*, llvm::Value*> thread_shared_;  // this thread's at Depth::first
  std::vector<llvm::Value*> accumulators_;                      // by y * x.each + x
};

}  // namespace loopfleet::worker
