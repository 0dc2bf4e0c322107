#pragma once
// StageEmitter: emits the code that one thread of an untiled stage runs (docs/LOWERING.md, "GPU").
// Used by one thread.

#include <cstdint>
#include <functional>

#include "worker/gpu/codegen/device_abi.h"
#include "worker/gpu/codegen/device_plan.h"
#include "worker/gpu/codegen/device_walk.h"

namespace loopfleet::worker {

class StageEmitter {
 public:
  StageEmitter(llvm::IRBuilderBase& builder, DeviceAbi& abi, const KernelPlan& plan,
               const Stage& stage, DeviceWalk& walk)
      : builder_(builder), abi_(abi), plan_(plan), stage_(stage), walk_(walk) {}

  void Emit(const ThreadMapping& threads);
  void Emit(const PointMapping& points);
  void Emit(const TeamMapping& team);

 private:
  using Numbered = std::function<void(llvm::Value* number)>;
  // Calls `run` with this thread's share of the numbers below `count`, divided among all threads of
  // the grid or of its block.
  void ForGrid(std::int64_t count, const Numbered& run);
  void ForBlock(std::int64_t count, const Numbered& run);

  void RunSerial(const std::vector<Step>& steps);
  void RunPoint(const PointMapping& points, llvm::Value* number);
  void RunReducing(const PointMapping& points, std::size_t level, llvm::Value* accumulator);
  enum class Fills { kHere, kDoneBefore };
  void RunTeam(const Step& step, Fills fills);
  void RunTeam(const std::vector<Step>& steps);

  llvm::IRBuilderBase& builder_;
  DeviceAbi& abi_;
  const KernelPlan& plan_;
  const Stage& stage_;
  DeviceWalk& walk_;
};

}  // namespace loopfleet::worker
