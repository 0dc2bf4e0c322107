#pragma once
// LoopState: the current position of the emitted code in its loops: for each access of the plan,
// the address at this point; for each dim, the elements left to its next loop. Emits the loops
// themselves; the caller emits their bodies. Used by one thread.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/unroller.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace loopfleet::worker {

class SourceLines;

class LoopState {
 public:
  using Values = std::vector<llvm::Value*>;
  // Emits one iteration. Takes the loop's offset and the values carried into the iteration; returns
  // the values carried out of it.
  using Iteration = std::function<Values(llvm::Value* offset, const Values& carried)>;

  // `buffers`: the start of each plan buffer. `lines`: null if nothing is noted.
  LoopState(llvm::IRBuilderBase& builder, const KernelPlan& plan, const Values& buffers,
            Unroller& unroller, SourceLines* lines = nullptr);

  SourceLines* lines() const { return lines_; }

  // The elements left to the next loop over `dim`: a constant unless an enclosing loop has a tail.
  llvm::Value* extent(looptree::DimId dim) const { return extents_[dim]; }
  // The same, if it is a constant; otherwise 0.
  std::int64_t ConstantExtent(looptree::DimId dim) const;

  // The offset of a running loop. Null: it was never entered.
  llvm::Value* offset(LoopId loop) const { return offsets_[loop]; }

  // The address of `access` at this point, plus `elements`; without its quotients.
  llvm::Value* Address(const Access& access, std::int64_t elements) const;
  // The start of the buffer of an access with guards.
  llvm::Value* Base(const Access& access) const;
  // The index at this point, 64 bits wide.
  llvm::Value* Index(const PlanIndex& index) const;

  // for (offset = start; offset < limit; offset += step). Emits no loop if constants show that it
  // has at most one iteration. Advances the addresses; leaves the extents alone.
  struct Range {
    LoopId loop = 0;
    llvm::Value* start = nullptr;
    llvm::Value* limit = nullptr;
    std::int64_t step = 1;
    bool may_be_empty = false;  // false: start is known to be less than limit
    bool unroll = false;        // as far as the unroller allows, if start and limit are constants
  };
  Values Run(const Range& range, const Values& carried, const Iteration& iteration);

  // Emits a loop of the plan over all that is left of its dim, unrolled if it is annotated so. Sets
  // the extent for inner loops.
  Values RunWhole(LoopId loop, const Values& carried, const Iteration& iteration);
  bool AsksForUnrolling(LoopId loop) const {
    return plan_.loops[loop].annotation == looptree::Annotation::kUnroll;
  }

  // A part of a loop, as offsets from the loop's start.
  struct Bounds {
    llvm::Value* start = nullptr;
    llvm::Value* limit = nullptr;
  };
  // Emits the iterations within `bounds`, possibly none. Sets the extent for inner loops.
  void RunPart(LoopId loop, const Bounds& bounds,
               const std::function<void(llvm::Value* offset)>& iteration);
  // Runs `emit` with `bounds` as all that is left of the dim. The emitted code is skipped at run
  // time if the part is empty.
  void Within(LoopId loop, const Bounds& bounds, const std::function<void()>& emit);

  // All non-constant values that the code of `step` may need. The caller replaces them while it
  // emits code in another function.
  struct Place {
    llvm::Value** value = nullptr;
    const Access* access = nullptr;  // the value is its address; null: an extent, offset or index
  };
  std::vector<Place> PlacesIn(const LoopStep& step);

  llvm::Value* Constant(std::int64_t value) const;

 private:
  struct User {
    std::size_t place = 0;  // index into addresses_
    std::int64_t stride = 0;
  };
  void AddUser(llvm::Value* start, const std::vector<AccessTerm>& terms);
  void AddUsers(const std::vector<Step>& steps, const Values& buffers);
  llvm::Value* Moved(llvm::Value* address, llvm::Value* elements) const;
  void AddUser(const Access& access, const Values& buffers);
  void AddPlaces(const std::vector<Step>& steps, std::vector<Place>& places,
                 std::set<LoopId>& once);
  llvm::Value* InnerExtent(const PlanLoop& loop, llvm::Value* extent, llvm::Value* offset) const;
  Values RunUnrolled(const Range& range, std::int64_t start, std::int64_t limit, Values carried,
                     const Iteration& iteration);
  // Writes out `copies` iterations in each iteration of a loop. Those left over follow as a loop.
  Values RunPartlyUnrolled(const Range& range, std::int64_t start, std::int64_t limit,
                           std::int64_t copies, const Values& carried, const Iteration& iteration);
  Values RunRolled(const Range& range, const Values& carried, const Iteration& iteration);
  Values AddressesOfUsers(LoopId loop) const;
  void SetAddressesOfUsers(LoopId loop, const Values& addresses);
  Values MovedAddresses(LoopId loop, const Values& addresses, llvm::Value* elements) const;

  llvm::IRBuilderBase& builder_;
  const KernelPlan& plan_;
  Unroller& unroller_;
  SourceLines* const lines_;
  Values extents_;  // by DimId
  Values offsets_;  // by LoopId
  // Addresses of accesses, in the order of the plan, and for bodies with guards starts of buffers
  // and indices.
  Values addresses_;
  // Into addresses_; never iterated.
  std::map<const Access*, std::size_t> index_;
  std::map<const Access*, std::size_t> bases_;
  std::map<const PlanIndex*, std::size_t> indices_;
  std::vector<std::vector<User>> users_;  // by LoopId
};

}  // namespace loopfleet::worker
