#pragma once
// LoopState: where the code being emitted stands in its loops: for each access of the plan the
// address that the loops entered so far lead to, for each dim how many elements are left to its
// next loop. It emits the loops themselves; what runs in them comes from the caller.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "worker/lowering/kernel_plan.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace loopfleet::worker {

class LoopState {
 public:
  using Values = std::vector<llvm::Value*>;
  // Emits one iteration; gets the loop's offset and the values carried into it, gives those carried
  // on.
  using Iteration = std::function<Values(llvm::Value* offset, const Values& carried)>;

  // `buffers`: the start of each plan buffer.
  LoopState(llvm::IRBuilderBase& builder, const KernelPlan& plan, const Values& buffers);

  // The elements left to the next loop over `dim`: a constant unless a tail is about.
  llvm::Value* extent(looptree::DimId dim) const { return extents_[dim]; }
  // The same, if it is a constant; else 0.
  std::int64_t ConstantExtent(looptree::DimId dim) const;

  // The offset of a loop that is being run; null before it was first entered.
  llvm::Value* offset(LoopId loop) const { return offsets_[loop]; }

  // The address of `access` here, moved on by `elements`.
  llvm::Value* Address(const Access& access, std::int64_t elements) const;

  // for (offset = start; offset < limit; offset += step): a loop, or nothing of one where constants
  // say that there is one iteration or none. The addresses move along; extents stay.
  struct Range {
    LoopId loop = 0;
    llvm::Value* start = nullptr;
    llvm::Value* limit = nullptr;
    std::int64_t step = 1;
    bool may_be_empty = false;  // start may reach limit; otherwise it is known to be below
    bool unroll = false;        // needs constants
  };
  Values Run(const Range& range, const Values& carried, const Iteration& iteration);

  // Runs a loop of the plan over all that is left of its dim, with the extent for inner loops set.
  Values RunWhole(LoopId loop, bool unroll, const Values& carried, const Iteration& iteration);

  // The part of a loop from one offset to another; both count from where the loop starts.
  struct Bounds {
    llvm::Value* start = nullptr;
    llvm::Value* limit = nullptr;
  };
  // Runs the iterations in there (which may be none), with the extent for inner loops set.
  void RunPart(LoopId loop, const Bounds& bounds,
               const std::function<void(llvm::Value* offset)>& iteration);
  // Emits code that takes this part for all that is left of the dim; nothing runs if it is empty.
  void Within(LoopId loop, const Bounds& bounds, const std::function<void()>& emit);

  // All values here that code for `step` may need and that are no constants: to be replaced while
  // code is emitted in another function.
  struct Place {
    llvm::Value** value = nullptr;
    const Access* access = nullptr;  // whose address it is; null: an extent or an offset
  };
  std::vector<Place> PlacesIn(const LoopStep& step);

  llvm::Value* Constant(std::int64_t value) const;

 private:
  struct User {
    std::size_t access = 0;  // index into addresses_
    std::int64_t stride = 0;
  };
  void AddUsers(const std::vector<Step>& steps, const Values& buffers);
  llvm::Value* Moved(llvm::Value* address, llvm::Value* elements) const;
  void AddUser(const Access& access, const Values& buffers);
  void AddPlaces(const std::vector<Step>& steps, std::vector<Place>& places,
                 std::set<LoopId>& once);
  llvm::Value* InnerExtent(const PlanLoop& loop, llvm::Value* extent, llvm::Value* offset) const;
  Values RunUnrolled(const Range& range, std::int64_t start, std::int64_t limit, Values carried,
                     const Iteration& iteration);
  Values RunRolled(const Range& range, const Values& carried, const Iteration& iteration);
  Values AddressesOfUsers(LoopId loop) const;
  void SetAddressesOfUsers(LoopId loop, const Values& addresses);
  Values MovedAddresses(LoopId loop, const Values& addresses, llvm::Value* elements) const;

  llvm::IRBuilderBase& builder_;
  const KernelPlan& plan_;
  Values extents_;                              // by DimId
  Values offsets_;                              // by LoopId
  Values addresses_;                            // by access, in the order of the plan
  std::map<const Access*, std::size_t> index_;  // of addresses_; only looked up, never walked
  std::vector<std::vector<User>> users_;        // by LoopId
};

}  // namespace loopfleet::worker
