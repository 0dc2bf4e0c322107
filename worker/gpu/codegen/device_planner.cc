#include "worker/gpu/codegen/device_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/result.h"
#include "worker/gpu/codegen/tile_choice.h"
#include "worker/lowering/direct_writes.h"
#include "worker/lowering/parallel_loops.h"

namespace loopfleet::worker {
namespace {

using looptree::Annotation;
using looptree::LoopTree;
using looptree::TreeNode;
using looptree::TreeRef;

constexpr std::int64_t kWarp = 32;
// Most thread-local memory, in bytes. A device reserves it for every thread that it can hold: here
// a quarter of a GiB on a device with 132 multiprocessors of 2,048 threads.
constexpr std::int64_t kLocalBytes = 1024;
// Most bytes of slots in the scratch area, in total.
constexpr std::int64_t kSlotBytes = std::int64_t{64} << 20;
// Most blocks of a launch. Beyond this, each block runs several iterations.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;
// Most private elements kept in registers, and most copies of bodies made for that.
constexpr std::int64_t kRegisterElements = 32;
constexpr std::int64_t kRegisterBodies = 128;

std::int64_t IterationsOf(const TreeNode& node) { return node.size + (node.tail > 0 ? 1 : 0); }

// The most points of any operation inside `loop`: the parallel work for a block.
std::int64_t PointsInside(const LoopTree& tree, TreeRef loop) {
  const std::span<const TreeNode> nodes = tree.nodes();
  std::int64_t most = 1;
  for (TreeRef ref = loop + 1; ref < nodes[loop].end; ++ref) {
    if (nodes[ref].kind != TreeNode::Kind::kOperation) continue;
    const auto reduced = tree.program().ReducedDims(nodes[ref].node);
    std::int64_t points = 1;
    for (TreeRef up = nodes[ref].parent; up != loop; up = nodes[up].parent) {
      if (std::ranges::find(reduced, nodes[up].dim) == reduced.end()) {
        points = std::min(points * IterationsOf(nodes[up]), kMostNumbers);
      }
    }
    most = std::max(most, points);
  }
  return most;
}

// The loops mapped to blocks or threads. A group without an annotation must start at a root. It
// keeps the outer loops that leave at least a warp's work inside; if there are none, all loops.
ParallelLoops ChooseLoops(const LoopTree& tree) {
  ParallelLoops loops = FindParallelLoops(tree, ParallelRule::kEvery);
  std::erase_if(loops.groups, [&](std::vector<TreeRef>& group) {
    std::int64_t iterations = 1;
    for (TreeRef ref : group) {
      iterations *= IterationsOf(tree.nodes()[ref]);
      if (iterations > kMostNumbers) {
        loops.refused.try_emplace(group.front(), "there are too many iterations");
        return true;
      }
    }
    const TreeNode& first = tree.nodes()[group.front()];
    const bool asked_for =
        first.annotation == Annotation::kThread && !loops.refused.contains(group.front());
    if (asked_for) return false;
    if (first.depth != 0) return true;
    std::size_t kept = 0;
    while (kept < group.size() && PointsInside(tree, group[kept]) >= kWarp) ++kept;
    if (kept > 0) group.resize(kept);
    return false;
  });
  return loops;
}

class StageMaker {
 public:
  StageMaker(const LoopTree& tree, DevicePlan& device)
      : tree_(tree), plan_(device.plan), device_(device) {}

  void AddStages() {
    for (const Step& step : plan_.steps) AddStage(step, RootOf(step));
    PlaceSlots();
  }

 private:
  TreeRef RootOf(const Step& step) const;
  void AddStage(const Step& step, TreeRef root);
  StageMapping MappingOf(const Step& step);
  std::optional<ThreadMapping> ThreadsOf(const LoopStep& root) const;
  StageMapping TeamOf(const LoopStep& root) const;
  bool HoldsParallel(const std::vector<Step>& steps) const;
  bool IsAnnotatedStep(const LoopStep& step) const {
    const PlanLoop& loop = plan_.loops[step.loop];
    return loop.parallel && loop.annotation == Annotation::kThread &&
           !plan_.not_parallel.contains(*loop.ref);
  }
  void SizeStage(Stage& stage) const;
  void PlacePrivate(Stage& stage) const;
  void ChooseRegisters(Stage& stage) const;
  std::int64_t PrivateBytes(const std::vector<Step>& steps) const;
  void PlaceSlots();
  void NoteEffects(const Stage& stage);

  const LoopTree& tree_;
  KernelPlan& plan_;
  DevicePlan& device_;
};

// Of a step of the plan. Operations outside of all loops are roots that run together: the last one.
TreeRef StageMaker::RootOf(const Step& step) const {
  if (const auto* loop = std::get_if<LoopStep>(&step.what)) return *plan_.loops[loop->loop].ref;
  return *tree_.LeafOf(std::get<Body>(step.what).statements.back().node);
}

void StageMaker::AddStage(const Step& step, TreeRef root) {
  Stage stage{.step = &step, .root = root, .mapping = MappingOf(step)};
  const auto* loop = std::get_if<LoopStep>(&step.what);
  const bool own_start = std::holds_alternative<TileMapping>(stage.mapping) ||
                         std::holds_alternative<PointMapping>(stage.mapping);
  // Nothing reads a result that is private to threads further inside: its start is left out.
  if (loop != nullptr && !own_start && PrivateBytes(loop->prepare) == 0) {
    for (const Step& fill : loop->prepare) AddStage(fill, root);
  }
  SizeStage(stage);
  PlacePrivate(stage);
  ChooseRegisters(stage);
  NoteEffects(stage);
  device_.stages.push_back(std::move(stage));
}

bool StageMaker::HoldsParallel(const std::vector<Step>& steps) const {
  return std::ranges::any_of(steps, [&](const Step& step) {
    const auto* loop = std::get_if<LoopStep>(&step.what);
    return loop != nullptr && (IsAnnotatedStep(*loop) || HoldsParallel(loop->steps));
  });
}

std::optional<ThreadMapping> StageMaker::ThreadsOf(const LoopStep& root) const {
  ThreadMapping threads;
  const LoopStep* step = &root;
  while (!plan_.loops[step->loop].parallel) {
    // A fill writes for all threads, which do not wait for each other. The root's fill is a
    // separate stage.
    if (step->steps.size() != 1 || (step != &root && !step->prepare.empty())) return std::nullopt;
    threads.around.push_back(step);
    step = std::get_if<LoopStep>(&step->steps.front().what);
    if (step == nullptr) return std::nullopt;
  }
  threads.group = ParallelGroup(plan_, *step);
  threads.iterations = MostIterations(plan_, threads.group);
  return threads;
}

StageMapping StageMaker::TeamOf(const LoopStep& root) const {
  if (!plan_.loops[root.loop].parallel) return TeamMapping{};
  TeamMapping team{.group = ParallelGroup(plan_, root), .iterations = 1};
  team.iterations = MostIterations(plan_, team.group);
  const TreeRef innermost = *plan_.loops[team.group.back()->loop].ref;
  if (PointsInside(tree_, innermost) < kWarp) return *ThreadsOf(root);
  return team;
}

StageMapping StageMaker::MappingOf(const Step& step) {
  const auto* root = std::get_if<LoopStep>(&step.what);
  if (root == nullptr) return TeamMapping{};
  if (IsAnnotatedStep(*root) || HoldsParallel(root->steps)) {
    if (auto threads = ThreadsOf(*root)) return *std::move(threads);
    return TeamMapping{};
  }
  auto nest = NestAt(*root);
  if (!nest.has_value() || !PointsAreIndependent(plan_, *nest)) return TeamOf(*root);
  if (auto tile = ChooseTile(plan_, *nest)) return *std::move(tile);
  PointMapping points = PointsOf(plan_, *std::move(nest));
  if (points.points > kMostNumbers) return TeamOf(*root);
  return points;
}

std::uint32_t BlockThreadsFor(std::int64_t work) {
  const std::int64_t warps = (std::min<std::int64_t>(work, kMostBlockThreads) + kWarp - 1) / kWarp;
  return static_cast<std::uint32_t>(std::max<std::int64_t>(warps, 1) * kWarp);
}

std::uint32_t BlocksFor(std::int64_t blocks) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(blocks, 1, kMostBlocks));
}

void StageMaker::SizeStage(Stage& stage) const {
  const auto one_each = [&](std::int64_t work) {
    stage.block_threads = BlockThreadsFor(work);
    stage.blocks = BlocksFor((work + stage.block_threads - 1) / stage.block_threads);
  };
  if (const auto* threads = std::get_if<ThreadMapping>(&stage.mapping)) {
    one_each(threads->iterations);
  } else if (const auto* points = std::get_if<PointMapping>(&stage.mapping)) {
    one_each(points->points);
  } else if (const auto* tile = std::get_if<TileMapping>(&stage.mapping)) {
    stage.block_threads = static_cast<std::uint32_t>(tile->x.threads * tile->y.threads);
    stage.blocks = static_cast<std::uint32_t>(tile->blocks);
  } else {
    const auto& team = std::get<TeamMapping>(stage.mapping);
    stage.blocks = BlocksFor(team.iterations);
    std::int64_t work = 1;
    if (const auto* root = std::get_if<LoopStep>(&stage.step->what)) {
      const LoopStep* innermost = team.group.empty() ? root : team.group.back();
      const auto ref = plan_.loops[innermost->loop].ref;
      work = ref.has_value() ? PointsInside(tree_, *ref) : kMostBlockThreads;
      if (team.group.empty()) work *= MostIterations(plan_, root->loop);
    }
    stage.block_threads = BlockThreadsFor(work);
  }
}

std::int64_t StageMaker::PrivateBytes(const std::vector<Step>& steps) const {
  std::int64_t bytes = 0;
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
      bytes = std::max({bytes, PrivateBytes(loop->prepare), PrivateBytes(loop->steps)});
      continue;
    }
    for (const Access* access : AccessesOf(std::get<Body>(step.what))) {
      const PlanBuffer& buffer = plan_.buffers[access->buffer];
      if (!buffer.per_thread) continue;
      bytes = std::max(bytes, buffer.scratch_offset + buffer.element_count * 4);
    }
  }
  return (bytes + 63) / 64 * 64;
}

void StageMaker::PlacePrivate(Stage& stage) const {
  const auto* root = std::get_if<LoopStep>(&stage.step->what);
  if (root == nullptr) return;
  stage.private_bytes = PrivateBytes(root->steps);
  if (stage.private_bytes == 0) return;
  const auto* team = std::get_if<TeamMapping>(&stage.mapping);
  const bool of_block = team != nullptr && !team->group.empty();
  if (of_block && stage.private_bytes <= kSharedBytes) {
    stage.place = PrivatePlace::kShared;
    return;
  }
  if (!of_block && stage.private_bytes <= kLocalBytes) {
    stage.place = PrivatePlace::kLocal;
    return;
  }
  stage.place = PrivatePlace::kScratch;
  const std::int64_t affordable = std::max<std::int64_t>(kSlotBytes / stage.private_bytes, 1);
  if (of_block) {
    stage.blocks = static_cast<std::uint32_t>(std::min<std::int64_t>(stage.blocks, affordable));
    stage.slots = stage.blocks;
    return;
  }
  // One block with fewer threads, or several full blocks.
  if (affordable < stage.block_threads) {
    stage.blocks = 1;
    stage.block_threads = static_cast<std::uint32_t>(affordable);
  } else {
    stage.blocks = static_cast<std::uint32_t>(
        std::min<std::int64_t>(stage.blocks, affordable / stage.block_threads));
  }
  stage.slots = std::int64_t{stage.blocks} * stage.block_threads;
}

void StageMaker::PlaceSlots() {
  std::int64_t bytes = 0;
  for (const Stage& stage : device_.stages) {
    bytes = std::max(bytes, stage.slots * stage.private_bytes);
  }
  device_.scratch_bytes = plan_.scratch_bytes + static_cast<std::uint64_t>(bytes);
}

// ---- registers ---------------------------------------------------------------------------------

struct BufferUse {
  std::set<LoopId> loops;  // loops that move an access to the buffer
  bool held = true;        // the buffer can be kept in registers
};

struct BodyPlace {
  std::vector<LoopId> loops;  // enclosing the body
};

void CollectUses(const std::vector<Step>& steps, std::vector<LoopId>& around,
                 std::vector<BodyPlace>& bodies, std::map<BufferId, BufferUse>& uses) {
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
      CollectUses(loop->prepare, around, bodies, uses);
      around.push_back(loop->loop);
      CollectUses(loop->steps, around, bodies, uses);
      around.pop_back();
      continue;
    }
    bodies.push_back({around});
    for (const Access* access : AccessesOf(std::get<Body>(step.what))) {
      BufferUse& use = uses[access->buffer];
      for (const AccessTerm& term : access->terms) use.loops.insert(term.loop);
      use.held &= access->IsAffine();
    }
  }
}

// Private elements can live in registers if every index is a compile-time constant, so the loops
// that move them are unrolled.
void StageMaker::ChooseRegisters(Stage& stage) const {
  if (stage.place != PrivatePlace::kLocal) return;
  const auto* threads = std::get_if<ThreadMapping>(&stage.mapping);
  if (threads == nullptr) return;
  std::vector<BodyPlace> bodies;
  std::map<BufferId, BufferUse> uses;
  std::vector<LoopId> around;
  CollectUses(threads->group.back()->steps, around, bodies, uses);
  const auto copies = [&](const std::set<LoopId>& unrolled) {
    std::int64_t total = 0;
    for (const BodyPlace& body : bodies) {
      std::int64_t here = 1;
      for (LoopId loop : body.loops) {
        if (unrolled.contains(loop))
          here = std::min(here * MostIterations(plan_, loop), kMostBlocks);
      }
      total += here > 1 ? here : 0;
    }
    return total;
  };
  std::int64_t elements = 0;
  for (const auto& [id, use] : uses) {
    const PlanBuffer& buffer = plan_.buffers[id];
    if (!buffer.per_thread || !use.held) continue;
    if (elements + buffer.element_count > kRegisterElements) continue;
    const bool fixed = std::ranges::all_of(
        use.loops, [&](LoopId loop) { return plan_.loops[loop].extents.size() == 1; });
    if (!fixed) continue;
    std::set<LoopId> unrolled = stage.unrolled;
    unrolled.insert(use.loops.begin(), use.loops.end());
    if (copies(unrolled) > kRegisterBodies) continue;
    stage.unrolled = std::move(unrolled);
    stage.registers.insert(id);
    elements += buffer.element_count;
  }
}

void StageMaker::NoteEffects(const Stage& stage) {
  if (const auto* threads = std::get_if<ThreadMapping>(&stage.mapping)) {
    for (const LoopStep* step : threads->group) {
      if (IsAnnotatedStep(*step)) device_.effective.insert(*plan_.loops[step->loop].ref);
    }
  }
}

}  // namespace

std::expected<DevicePlan, Failure> PlanDevice(const LoopTree& tree, const PlanLimits& limits) {
  // Memory bounds the dims of tensors, but not those of constants alone.
  for (const looptree::Dim& dim : tree.program().dims) {
    if (dim.size <= kMostNumbers) continue;
    return std::unexpected(
        Failure{.code = FailureCode::kUnsupported,
                .message = fmt::format("{} has {} elements; a GPU's loops count to {}", dim.name,
                                       dim.size, kMostNumbers)});
  }
  PlanLimits device_limits = limits;
  device_limits.threads = 2;  // any number above 1; SizeStage chooses the real one
  device_limits.private_scratch = PlanLimits::Private::kElsewhere;
  LF_TRY(KernelPlan plan, PlanKernel(tree, device_limits, ChooseLoops(tree)));
  WriteDirectly(plan);
  DevicePlan device{.plan = std::move(plan), .stages = {}, .scratch_bytes = 0, .effective = {}};
  StageMaker(tree, device).AddStages();
  return device;
}

}  // namespace loopfleet::worker
