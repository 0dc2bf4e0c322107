#pragma once
// KernelPlan: the full meaning of a loop tree, independent of any target: the buffers and their
// sizes, what each operation reads and writes as affine functions of the enclosing loops, where
// accumulators are initialised, and which extents each loop can have. Code generators only decide
// how to run it fast. docs/LOWERING.md is the contract in words.

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/kernel.h"
#include "worker/lowering/parallel_loops.h"

namespace loopfleet::worker {

using BufferId = std::uint32_t;  // index into KernelPlan::buffers
using LoopId = std::uint32_t;    // index into KernelPlan::loops

struct PlanLimits {
  std::uint64_t footprint_bytes = looptree::Limits{}.footprint_bytes;
  // Threads that parallel loops are split over; 1: they run as ordinary loops.
  std::uint32_t threads = 1;
  // Where the intermediates private to a thread lie.
  enum class Private : std::uint8_t {
    kInScratchArea,  // a copy for each of `threads`
    kElsewhere,      // not counted in scratch_bytes; their offsets count from 0
  };
  Private private_scratch = Private::kInScratchArea;
};

// A tensor of the program held whole, or an intermediate held for one iteration of its scope.
struct PlanBuffer {
  BufferSpec::Role role = BufferSpec::Role::kInput;
  looptree::NodeId node = 0;
  std::vector<std::int64_t> extents;  // along the node's dims, row-major
  std::int64_t element_count = 1;
  std::int64_t scratch_offset = 0;  // kScratch: bytes into the scratch area, a multiple of 64
  // kScratch: lives within one iteration of a parallel loop, so each thread has its own copy,
  // KernelPlan::thread_bytes after that of the thread before.
  bool per_thread = false;
};

// The loop's offset is counted in elements of its dim: 0, step, 2 * step, ...
struct PlanLoop {
  std::optional<looptree::TreeRef> ref;  // none: made by the plan, to fill an accumulator or panels
  looptree::DimId dim = 0;
  std::int64_t step = 1;  // elements that one iteration covers
  // Every number of elements that this loop can have on entry, largest first. Several: an enclosing
  // loop of the dim has a tail. The loop runs ceil(extent / step) times, the last time over the
  // remainder.
  std::vector<std::int64_t> extents;
  looptree::Annotation annotation = looptree::Annotation::kNone;
  // Its iterations may run at the same time, on different threads. If it contains nothing but
  // another parallel loop, the two are split as one. No loop further inside is parallel.
  bool parallel = false;
};

struct AccessTerm {
  LoopId loop = 0;
  std::int64_t stride = 0;  // never 0
  friend bool operator==(const AccessTerm&, const AccessTerm&) = default;
};
// constant + sum of stride * (offset of loop): an index before its division, below 2^30.
struct PlanIndex {
  std::int64_t constant = 0;
  std::vector<AccessTerm> terms;  // outermost loop first
};
// index / divisor has to be whole and in [0, size); otherwise the operand is `outside`.
struct AccessGuard {
  PlanIndex index;
  std::int64_t divisor = 1;
  std::int64_t size = 1;
  double outside = 0;
};
// stride * (index / divisor). The division is exact where all guards hold.
struct AccessQuotient {
  PlanIndex index;
  std::int64_t divisor = 1;
  std::int64_t stride = 0;
};
// Element index into `buffer` = constant + sum of stride * (offset of loop) + sum of quotients. It
// is inside the buffer where all guards hold.
struct Access {
  BufferId buffer = 0;
  std::int64_t constant = 0;
  std::vector<AccessTerm> terms;          // outermost loop first
  std::vector<AccessQuotient> quotients;  // only operands have any, and guards
  std::vector<AccessGuard> guards;        // the first that fails gives the operand

  bool IsAffine() const { return quotients.empty() && guards.empty(); }
};

// The operands of an operation.
struct Literal {
  double value = 0;
  std::vector<AccessGuard> guards;
};
struct ValueOf {
  std::uint32_t statement = 0;  // an earlier one of the same body
  std::vector<AccessGuard> guards;
};
using Operand = std::variant<Literal, ValueOf, Access>;

// One operation at one point of its loops.
struct Statement {
  looptree::NodeId node = 0;
  looptree::Op op =
      looptree::Op::kCopy;  // kCopy: the value of operand 0 (reads, views, writes too)
  std::vector<Operand> operands;
  // Where the value goes; none if only later statements of this body use it.
  std::optional<Access> target;
  // The loops this operation reduces over, outermost first. If there are any, the value is combined
  // into the target by `op`, and the statement is the last of its body.
  std::vector<LoopId> reduced;
};

// Operations that run together, in order, once for each point of the loops round them.
struct Body {
  std::vector<Statement> statements;
  // The body runs only in the first iteration of each of these loops: a reduction lies in them
  // without running over them, inside loops that it reduces over.
  std::vector<LoopId> once;
};

struct Step;
struct LoopStep {
  LoopId loop = 0;
  // Run each time before this loop: they set the accumulators of the one reduction whose outermost
  // reduced loop this is to the identity.
  std::vector<Step> prepare;
  std::vector<Step> steps;
};
struct Step {
  std::variant<LoopStep, Body> what;
};

struct KernelPlan {
  std::vector<std::int64_t> dim_sizes;  // by looptree::DimId
  std::vector<PlanBuffer> buffers;      // inputs, outputs, intermediates
  std::vector<PlanLoop> loops;
  std::vector<Step> steps;
  std::uint64_t scratch_bytes = 0;  // all intermediates, those of all threads included
  std::uint64_t thread_bytes = 0;   // the intermediates private to one thread
  std::uint32_t threads = 1;        // PlanLimits::threads if a loop is parallel, else 1
  // Loops annotated `thread` that cannot be split over threads, and why; empty for one thread.
  std::map<looptree::TreeRef, std::string> not_parallel;
};

// Failure: LIMIT_FOOTPRINT.
std::expected<KernelPlan, Failure> PlanKernel(const looptree::LoopTree& tree,
                                              const PlanLimits& limits = {});
// Splits these loops, whatever is annotated.
std::expected<KernelPlan, Failure> PlanKernel(const looptree::LoopTree& tree,
                                              const PlanLimits& limits, ParallelLoops parallel);

// The value that combining starts from: 0, 1, +infinity or -infinity.
double ReductionIdentity(looptree::Op op);

// What a caller has to pass: inputs, outputs, and one scratch area if any intermediates exist.
std::vector<BufferSpec> BufferSpecsOf(const KernelPlan& plan);

}  // namespace loopfleet::worker
