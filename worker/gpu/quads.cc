#include "worker/gpu/quads.h"

#include <algorithm>
#include <map>

#include "worker/cpu/nest.h"

namespace loopfleet::worker {
namespace {

bool SamePlace(const Access& a, const Access& b) {
  return a.buffer == b.buffer && a.constant == b.constant && a.terms == b.terms;
}

// Wherever it is met; so it always stands at its start.
bool RunsOnce(const PlanLoop& loop) { return loop.extents.front() <= loop.step; }

}  // namespace

std::optional<StraightLine> StraightLineOf(const KernelPlan& plan, const std::vector<Step>& steps) {
  StraightLine line;
  for (const Step& step : steps) {
    if (const auto* body = std::get_if<Body>(&step.what)) {
      if (!body->once.empty()) return std::nullopt;
      line.push_back(body);
      continue;
    }
    const auto& loop = std::get<LoopStep>(step.what);
    if (!RunsOnce(plan.loops[loop.loop])) return std::nullopt;
    for (const std::vector<Step>* inside : {&loop.prepare, &loop.steps}) {
      const auto more = StraightLineOf(plan, *inside);
      if (!more) return std::nullopt;
      line.insert(line.end(), more->begin(), more->end());
    }
  }
  return line;
}

bool MovesInQuads(const KernelPlan& plan, const Access& access, LoopId loop) {
  if (StrideOf(access, loop) != 1 || access.constant % kQuad != 0) return false;
  // Every loop stands at a multiple of its step; tensors and intermediates start at one of 64
  // bytes.
  return std::ranges::all_of(access.terms, [&](const AccessTerm& term) {
    return term.loop == loop || RunsOnce(plan.loops[term.loop]) ||
           term.stride * plan.loops[term.loop].step % kQuad == 0;
  });
}

bool RunsInQuads(const KernelPlan& plan, const std::set<BufferId>& registers,
                 const StraightLine& line, LoopId loop) {
  const PlanLoop& quad = plan.loops[loop];
  if (quad.step != 1 || quad.extents.front() < kQuad) return false;
  std::map<BufferId, std::vector<const Access*>> accesses;
  std::set<BufferId> moved;  // four elements at a time
  bool gains = false;        // not where it is the thread's own
  for (const Body* body : line) {
    for (const Access* access : AccessesOf(*body)) {
      accesses[access->buffer].push_back(access);
      if (registers.contains(access->buffer) || !MovesInQuads(plan, *access, loop)) continue;
      moved.insert(access->buffer);
      gains = gains || !plan.buffers[access->buffer].per_thread;
    }
  }
  if (!gains) return false;
  // What is moved so and written may be read only where it is written, and before that: then no
  // iteration sees what another one writes. All else keeps its order.
  std::set<BufferId> written;
  for (const Body* body : line) {
    for (const Statement& statement : body->statements) {
      for (const Operand& operand : statement.operands) {
        const auto* access = std::get_if<Access>(&operand);
        if (access != nullptr && written.contains(access->buffer)) return false;
      }
      if (!statement.target.has_value() || !moved.contains(statement.target->buffer)) continue;
      const Access& target = *statement.target;
      const bool is_alone = std::ranges::all_of(accesses[target.buffer], [&](const Access* access) {
        return SamePlace(*access, target);
      });
      if (!is_alone || !written.insert(target.buffer).second) return false;
    }
  }
  return true;
}

}  // namespace loopfleet::worker
