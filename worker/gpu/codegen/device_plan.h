#pragma once
// DevicePlan: a KernelPlan cut into stages, the launches that a GPU runs one after the other, and
// what the blocks and threads of each stage do. Independent of LLVM and CUDA. The rules are in
// docs/LOWERING.md, "GPU".

#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/loop_nest.h"

namespace loopfleet::worker {

inline constexpr std::uint32_t kMostBlockThreads = 256;
// Iterations that a launch numbers with 32 bits.
inline constexpr std::int64_t kMostNumbers = std::int64_t{1} << 30;
// Shared memory that a block gets without opting in, on every device since sm_75, in bytes.
inline constexpr std::int64_t kSharedBytes = std::int64_t{48} << 10;

// A loop annotated `thread`, or a group of such loops: one thread for each combined iteration. The
// thread runs everything inside serially.
struct ThreadMapping {
  // Loops that contain only the group, outermost first. Every thread runs them.
  std::vector<const LoopStep*> around;
  std::vector<const LoopStep*> group;  // outermost first
  std::int64_t iterations = 1;         // of the group, tails included
};

// A nest that is not tiled: one thread for each point of its loops that do not reduce.
struct PointMapping {
  Nest nest;
  std::vector<const LoopStep*> free;    // the loops that do not reduce, outermost first
  std::vector<const LoopStep*> serial;  // the loops that reduce, outermost first
  std::int64_t points = 1;              // beyond kMostNumbers: that many at least
};

// Everything else: one block for each combined iteration of the group. The block's threads run what
// is inside together and wait for each other between steps.
struct TeamMapping {
  std::vector<const LoopStep*> group;  // outermost first; empty: one block runs everything
  std::int64_t iterations = 1;
};

// One dim of a tile.
struct TileAxis {
  std::optional<looptree::DimId> dim;  // none: the axis is unused
  LoopId loop = 0;                     // the innermost loop over the dim
  std::int64_t extent = 1;             // elements of the dim
  std::int64_t block = 1;              // elements per block: threads * each
  std::int64_t threads = 1;
  std::int64_t each = 1;  // elements per thread
  std::int64_t blocks() const { return (extent + block - 1) / block; }
  // A thread's elements form groups of this many contiguous ones, `threads * group` apart.
  std::int64_t group() const { return each < 4 ? each : 4; }
};

// An operand whose elements are each used by many threads of a block. A slice of it, as deep as
// `depth` steps of the innermost reduced loop, is copied to shared memory first.
struct StagedOperand {
  const Access* access = nullptr;
  bool along_x = false;          // false: along y
  std::int64_t axis_stride = 0;  // in memory, in elements
  std::int64_t depth_stride = 0;
  bool axis_fastest = true;  // neighbouring threads load along the axis; false: along the depth
  bool vectors = false;      // loads four elements at a time
  std::int64_t pitch = 0;    // elements from one step to the next in shared memory
  std::int64_t offset = 0;   // of the slice in shared memory, in elements
};

// A nest whose points form a grid of tiles: one block per tile, a few points per thread. Each
// thread keeps the accumulators of its points in registers.
struct TileMapping {
  Nest nest;
  TileAxis x;  // the axis along which the result is contiguous, if any
  TileAxis y;
  std::vector<TileAxis> others;     // a block has one element of each
  std::vector<LoopId> reduced;      // outermost first
  std::int64_t depth = 1;           // steps of the innermost reduced loop between two barriers
  bool whole_depth = false;         // that loop's extent is always a multiple of depth
  std::int64_t unrolled_steps = 1;  // steps that are unrolled; divides depth
  std::vector<StagedOperand> staged;
  std::int64_t shared_elements = 0;
  std::int64_t blocks = 1;
};

using StageMapping = std::variant<ThreadMapping, PointMapping, TeamMapping, TileMapping>;

// Where a thread (ThreadMapping) or block (TeamMapping) keeps its private intermediates.
enum class PrivatePlace : std::uint8_t {
  kNone,     // no private intermediates
  kLocal,    // thread-local memory, or registers
  kShared,   // shared memory of the block
  kScratch,  // a slot of the scratch area; threads or blocks are limited to the slots
};

// One launch.
struct Stage {
  const Step* step = nullptr;
  looptree::TreeRef root = 0;  // of the tree: what the launch runs for
  StageMapping mapping;
  std::uint32_t block_threads = 1;
  std::uint32_t blocks = 1;
  PrivatePlace place = PrivatePlace::kNone;
  std::int64_t private_bytes = 0;  // a multiple of 64
  std::int64_t slots = 0;          // with kScratch
  std::set<BufferId> registers;    // private buffers kept entirely in registers
  std::set<LoopId> unrolled;       // loops unrolled so that `registers` is possible
};

struct DevicePlan {
  KernelPlan plan;
  std::vector<Stage> stages;              // in execution order
  std::uint64_t scratch_bytes = 0;        // plan.scratch_bytes plus the slots after it
  std::set<looptree::TreeRef> effective;  // loops whose annotation changed something
};

// True if each point of the nest's loops that do not reduce can run on its own thread.
bool PointsAreIndependent(const KernelPlan& plan, const Nest& nest);
PointMapping PointsOf(const KernelPlan& plan, Nest nest);
// `first` and the parallel loops perfectly nested in it, outermost first.
std::vector<const LoopStep*> ParallelGroup(const KernelPlan& plan, const LoopStep& first);
std::int64_t MostIterations(const KernelPlan& plan, const std::vector<const LoopStep*>& group);
// The most iterations of the loop.
std::int64_t MostIterations(const KernelPlan& plan, LoopId loop);
// True if the reduction's outermost loop is in the nest, so that it starts from the identity.
bool StartsInside(const Nest& nest);

// True if four floats can be loaded or stored at a time: the access moves by one element along
// `axis`, whose `extent` is a multiple of four, and by multiples of four along every other loop.
bool MovesByFours(const KernelPlan& plan, const Nest& nest, const Access& access, LoopId axis,
                  std::int64_t extent);

// One line per stage: its launch size and mapping. For people and tests.
std::string DescribeStages(const DevicePlan& device);

}  // namespace loopfleet::worker
