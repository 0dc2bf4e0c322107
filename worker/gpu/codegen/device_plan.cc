#include "worker/gpu/codegen/device_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::worker {

std::int64_t MostIterations(const KernelPlan& plan, LoopId id) {
  const PlanLoop& loop = plan.loops[id];
  return (loop.extents.front() + loop.step - 1) / loop.step;
}

std::vector<const LoopStep*> ParallelGroup(const KernelPlan& plan, const LoopStep& first) {
  std::vector<const LoopStep*> group = {&first};
  for (;;) {
    const LoopStep& last = *group.back();
    if (last.steps.size() != 1) return group;
    const auto* inside = std::get_if<LoopStep>(&last.steps.front().what);
    if (inside == nullptr || !plan.loops[inside->loop].parallel) return group;
    group.push_back(inside);
  }
}

std::int64_t MostIterations(const KernelPlan& plan, const std::vector<const LoopStep*>& group) {
  std::int64_t iterations = 1;
  for (const LoopStep* step : group) iterations *= MostIterations(plan, step->loop);
  return iterations;
}

bool StartsInside(const Nest& nest) {
  const Statement* reduction = nest.reduction();
  if (reduction == nullptr) return false;
  return std::ranges::any_of(
      nest.loops, [&](const LoopStep* step) { return step->loop == reduction->reduced.front(); });
}

bool PointsAreIndependent(const KernelPlan& plan, const Nest& nest) {
  if (!nest.body->once.empty()) return false;
  bool writes = false;
  for (const Statement& statement : nest.body->statements) {
    if (!statement.target.has_value()) continue;
    writes = true;
    for (const LoopStep* step : nest.loops) {
      if (nest.Reduces(step->loop) || MostIterations(plan, step->loop) == 1) continue;
      if (StrideOf(*statement.target, step->loop) == 0) return false;
    }
  }
  // A fill stands before the loop whose reduction it starts: before the nest, or inside it, where
  // the accumulator replaces it. No other fill is possible.
  return writes;
}

PointMapping PointsOf(const KernelPlan& plan, Nest nest) {
  PointMapping points{.nest = std::move(nest), .free = {}, .serial = {}, .points = 1};
  for (const LoopStep* step : points.nest.loops) {
    if (points.nest.Reduces(step->loop)) {
      points.serial.push_back(step);
    } else {
      points.free.push_back(step);
      // Loops cover a dim several times where the last iterations are short.
      points.points = std::min(points.points * MostIterations(plan, step->loop), 2 * kMostNumbers);
    }
  }
  return points;
}

bool MovesByFours(const KernelPlan& plan, const Nest& nest, const Access& access, LoopId axis,
                  std::int64_t extent) {
  if (StrideOf(access, axis) != 1 || extent % 4 != 0 || access.constant % 4 != 0) return false;
  const looptree::DimId dim = plan.loops[axis].dim;
  // The steps of outer loops over the axis' dim do not matter: elements count from the dim's start.
  return std::ranges::all_of(nest.loops, [&](const LoopStep* step) {
    const bool along =
        plan.loops[step->loop].dim == dim && nest.Reduces(step->loop) == nest.Reduces(axis);
    return along || StrideOf(access, step->loop) % 4 == 0;
  });
}

std::string DescribeStages(const DevicePlan& device) {
  std::string text;
  for (const Stage& stage : device.stages) {
    text += fmt::format("{} x {}: ", stage.blocks, stage.block_threads);
    if (const auto* threads = std::get_if<ThreadMapping>(&stage.mapping)) {
      text += fmt::format("{} threads", threads->iterations);
    } else if (const auto* points = std::get_if<PointMapping>(&stage.mapping)) {
      text += fmt::format("{} points", points->points);
    } else if (const auto* team = std::get_if<TeamMapping>(&stage.mapping)) {
      text += fmt::format("team, {} iterations", team->iterations);
    } else {
      const auto& tile = std::get<TileMapping>(stage.mapping);
      text += fmt::format("tile {}x{}, {}x{} each, depth {}, {} staged", tile.y.block, tile.x.block,
                          tile.y.each, tile.x.each, tile.depth, tile.staged.size());
    }
    switch (stage.place) {
      case PrivatePlace::kNone: break;
      case PrivatePlace::kLocal: text += fmt::format(", {} B local", stage.private_bytes); break;
      case PrivatePlace::kShared: text += fmt::format(", {} B shared", stage.private_bytes); break;
      case PrivatePlace::kScratch: text += fmt::format(", {} slots", stage.slots); break;
    }
    if (!stage.registers.empty()) text += fmt::format(", {} in registers", stage.registers.size());
    text += "\n";
  }
  return text;
}

}  // namespace loopfleet::worker
