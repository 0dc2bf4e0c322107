#pragma once
// QuadEmitter: four neighbouring iterations of a loop (quads.h), by one thread.

#include <array>
#include <functional>
#include <map>

#include "worker/gpu/device_plan.h"
#include "worker/gpu/device_walk.h"
#include "worker/gpu/quads.h"

namespace loopfleet::worker {

class QuadEmitter {
 public:
  // Where what lives within one iteration is: four of each, or one that they share.
  enum class Iterations { kOfTheirOwn, kOfOneThread };

  QuadEmitter(llvm::IRBuilderBase& builder, const KernelPlan& plan, const Stage& stage,
              DeviceWalk& walk)
      : builder_(builder), plan_(plan), stage_(stage), walk_(walk) {}

  // The walk stands at the first of the four. The reduction that ends the line, if one does, goes
  // into the variable `accumulator`; null: into memory.
  void Run(const StraightLine& line, LoopId loop, Iterations iterations,
           llvm::Value* accumulator = nullptr);

  // The walk stands at the first of four, entered so, of which some may not exist: those run one by
  // one, by `single`, where the walk stands at it.
  void RunUpToFour(const StraightLine& line, const DeviceWalk::Entered& entered,
                   Iterations iterations, const std::function<void()>& single,
                   llvm::Value* accumulator = nullptr);

 private:
  using Four = std::array<llvm::Value*, kQuad>;

  // Whether it is moved 128 bits at a time.
  bool IsWide(const Access& access, LoopId loop) const;
  Four LoadWide(const Access& access) const;
  void LoadAhead(const StraightLine& line, LoopId loop);
  llvm::Value* Load(const Access& access, LoopId loop, std::int64_t lane);
  void RunLane(const Body& body, LoopId loop, std::int64_t lane, llvm::Value* accumulator);

  llvm::IRBuilderBase& builder_;
  const KernelPlan& plan_;
  const Stage& stage_;
  DeviceWalk& walk_;
  std::map<const Access*, Four> loaded_;  // only looked up, never walked
  std::map<const Access*, Four> stored_;
};

}  // namespace loopfleet::worker
