#pragma once
// Unroller: decides how many iterations of each loop annotated `unroll` a kernel writes out, so
// that its code stays within a bound whatever the schedule asks for.
//
// A kernel that asks for unrolling is emitted twice. In the first emission every loop stays a loop,
// and the unroller measures how many instructions one iteration of each takes. Choose() decides
// from these numbers, the innermost loops first, and the second emission follows it. All numbers
// come from the plan and the target, so the same tree always gets the same code. Used by one
// thread.

#include <cstdint>
#include <map>
#include <vector>

#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

// In instructions of the emitter's intermediate language, before machine code is made of them.
struct UnrollLimits {
  std::uint64_t loop = 0;    // all copies of one loop's body
  std::uint64_t kernel = 0;  // the whole kernel
};

class Unroller {
 public:
  explicit Unroller(const KernelPlan& plan) : plan_(plan), factors_(plan.loops.size(), 1) {}

  // False: no loop asks for it, so one emission is enough.
  bool IsNeeded() const;

  // ---- while emitting
  void CountInstruction() { ++count_; }
  // How many of `iterations` are written out where the loop is emitted: all of them, a smaller
  // power of two, or 1. `scale` iterations of the plan's loop count as one here.
  std::int64_t Copies(LoopId loop, std::int64_t iterations, std::int64_t scale);
  // Brackets the emission of one iteration of a loop that asks for unrolling. Calls nest.
  void EnterIteration(LoopId loop, std::int64_t iterations);
  void LeaveIteration();

  // ---- between the two emissions
  // All iterations of a loop are written out if they fit, else the largest power of two that does.
  // They fit if all copies of the body take at most `limits.loop` instructions wherever the loop is
  // emitted, and the kernel at most `limits.kernel`.
  void Choose(const UnrollLimits& limits);

  // ---- after the second emission
  struct Written {
    std::int64_t copies = 1;
    std::int64_t iterations = 1;
  };
  // The loops that ask for unrolling and have more than one iteration, where that was most.
  const std::map<LoopId, Written>& written() const { return written_; }

 private:
  // One place where a loop that asks for unrolling is emitted.
  struct Place {
    LoopId loop = 0;
    std::int64_t iterations = 0;     // the most it can have there
    std::uint64_t instructions = 0;  // of one iteration, with one iteration of each loop inside
    std::vector<Place> inner;
  };
  std::uint64_t SizeOf(const Place& place) const;  // of all copies, those of inner loops included
  void AddIds(const std::vector<Place>& places, std::map<LoopId, std::vector<const Place*>>& ids);

  const KernelPlan& plan_;
  bool is_chosen_ = false;
  std::vector<std::int64_t> factors_;  // by LoopId
  std::uint64_t count_ = 0;
  std::vector<Place> places_;  // the outermost ones
  std::vector<Place> open_;    // outermost first; `instructions` is the count at EnterIteration
  std::map<LoopId, Written> written_;
};

}  // namespace loopfleet::worker
