#pragma once
// DevicePlan: a KernelPlan cut into the kernels that a GPU runs one after the other, and for each
// of them what its blocks and threads do. Nothing here knows of LLVM or CUDA; the rules are those
// of docs/LOWERING.md, "GPU".

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
// Shared memory that every device since sm_75 gives a block without asking.
inline constexpr std::int64_t kSharedBytes = std::int64_t{48} << 10;

// One loop annotated `thread`, or a group of them: a thread for each iteration of all of them
// together, which runs everything inside as a CPU would.
struct ThreadMapping {
  // Loops round the group, outermost first, that hold nothing else: every thread runs them.
  std::vector<const LoopStep*> around;
  std::vector<const LoopStep*> group;  // outermost first
  std::int64_t iterations = 1;         // of the group, tails included
};

// A nest without a tile: a thread for each point of its loops that do not reduce.
struct PointMapping {
  Nest nest;
  std::vector<const LoopStep*> free;    // the loops that do not reduce, outermost first
  std::vector<const LoopStep*> serial;  // the others
  std::int64_t points = 1;
};

// Everything else: a block for each iteration of the loops given, in which all threads run what is
// inside together, waiting for each other between steps.
struct TeamMapping {
  std::vector<const LoopStep*> group;  // none: one block runs it all
  std::int64_t iterations = 1;
};

// One dim of a tile.
struct TileAxis {
  std::optional<looptree::DimId> dim;  // none: there is no such dim
  LoopId loop = 0;                     // the innermost one over it
  std::int64_t extent = 1;             // all elements of it
  std::int64_t block = 1;              // of them in a block: threads * each
  std::int64_t threads = 1;
  std::int64_t each = 1;  // elements of one thread
  std::int64_t blocks() const { return (extent + block - 1) / block; }
  // A thread's elements come in groups of so many side by side, the groups `threads * group` apart.
  std::int64_t group() const { return each < 4 ? each : 4; }
};

// An operand of which each element is used by many threads of a block: a slice of it, `depth`
// steps of the innermost reduced loop deep, is put into shared memory first.
struct StagedOperand {
  const Access* access = nullptr;
  bool along_x = false;          // else along y
  std::int64_t axis_stride = 0;  // in memory, in elements
  std::int64_t depth_stride = 0;
  bool axis_fastest = true;  // neighbouring threads load along the axis, else along the depth
  bool vectors = false;      // four elements at a time
  std::int64_t pitch = 0;    // elements from one step to the next in shared memory
  std::int64_t offset = 0;   // of its slice, in elements
};

// A nest whose points form a grid of tiles: a block for each tile, a few points for each thread,
// their sums in registers.
struct TileMapping {
  Nest nest;
  TileAxis x;  // along which the result lies side by side, if along any
  TileAxis y;
  std::vector<TileAxis> others;  // one element of each in a block
  std::vector<LoopId> reduced;   // outermost first
  std::int64_t depth = 1;        // steps of the innermost one between two barriers
  bool whole_depth = false;      // its extent is always a multiple of that
  std::int64_t in_a_row = 1;     // of those steps, written out; divides depth
  std::vector<StagedOperand> staged;
  std::int64_t shared_elements = 0;
  std::int64_t blocks = 1;
};

using StageMapping = std::variant<ThreadMapping, PointMapping, TeamMapping, TileMapping>;

// Where a thread (ThreadMapping) or block (TeamMapping) has its own intermediates.
enum class PrivatePlace : std::uint8_t {
  kNone,     // it has none
  kLocal,    // thread-local memory, or registers
  kShared,   // shared memory of the block
  kScratch,  // a slot of the scratch area: no more threads or blocks than slots
};

// One launch.
struct Stage {
  const Step* step = nullptr;
  StageMapping mapping;
  std::uint32_t block_threads = 1;
  std::uint32_t blocks = 1;
  PrivatePlace place = PrivatePlace::kNone;
  std::int64_t private_bytes = 0;  // multiple of 64
  std::int64_t slots = 0;          // kScratch
  std::set<BufferId> registers;    // private buffers whose every element has a register
  std::set<LoopId> unrolled;       // written out for that
};

struct DevicePlan {
  KernelPlan plan;
  std::vector<Stage> stages;              // to be run in order
  std::uint64_t scratch_bytes = 0;        // plan.scratch_bytes and the slots behind it
  std::set<looptree::TreeRef> effective;  // annotated loops that changed something
};

// True if a thread can have each point of the nest's loops that do not reduce.
bool PointsAreIndependent(const KernelPlan& plan, const Nest& nest);
PointMapping PointsOf(const KernelPlan& plan, Nest nest);
// `first` and the parallel loops that it holds and nothing else, outermost first.
std::vector<const LoopStep*> ParallelGroup(const KernelPlan& plan, const LoopStep& first);
std::int64_t MostIterations(const KernelPlan& plan, const std::vector<const LoopStep*>& group);
// Iterations of the loop, at most.
std::int64_t MostIterations(const KernelPlan& plan, LoopId loop);
// The reduction's outermost loop is in the nest, so it starts from the identity.
bool StartsInside(const Nest& nest);

// Four floats at a time may be loaded or stored there: the access moves by one element along
// `axis`, whose `extent` is a multiple of four, and by multiples of four with everything else.
bool MovesByFours(const KernelPlan& plan, const Nest& nest, const Access& access, LoopId axis,
                  std::int64_t extent);

// One line for each stage: what it runs on, for people and tests.
std::string DescribeStages(const DevicePlan& device);

}  // namespace loopfleet::worker
