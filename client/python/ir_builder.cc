#include "client/python/ir_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "client/python/schedule_error.h"
#include "common/looptree/program/checked_math.h"
#include "common/looptree/program/dim_set.h"

namespace loopfleet::python {

using looptree::DimId;
using looptree::LoopSpec;
using looptree::LoopTree;
using looptree::Node;
using looptree::NodeId;
using looptree::NodeSchedule;
using looptree::Program;
using looptree::RejectionCode;

DimId IrBuilder::CreateVar(std::string name, std::int64_t size) {
  program_.dims.push_back({std::move(name), size});
  return static_cast<DimId>(program_.dims.size() - 1);
}

void IrBuilder::SetSize(DimId id, std::int64_t size) {
  const looptree::Dim& dim = var(id);
  if (size < 1) RaiseSchedule(fmt::format("{} cannot have {} elements", dim.name, size));
  if (dim.size != 0 && dim.size != size) {
    RaiseSchedule(fmt::format("{} has {} elements, not {}", dim.name, dim.size, size));
  }
  program_.dims[id].size = size;
}

NodeId IrBuilder::CreateNode(Node node) {
  program_.nodes.push_back(std::move(node));
  schedule_.emplace_back();
  return static_cast<NodeId>(program_.nodes.size() - 1);
}

const Node& IrBuilder::node(NodeId id) const {
  if (id >= program_.nodes.size()) {
    RaiseSchedule(fmt::format("there is no node {}: there are {}", id, program_.nodes.size()));
  }
  return program_.nodes[id];
}

const looptree::Dim& IrBuilder::var(DimId id) const {
  if (id >= program_.dims.size()) {
    RaiseSchedule(fmt::format("there is no var {}: there are {}", id, program_.dims.size()));
  }
  return program_.dims[id];
}

NodeSchedule& IrBuilder::ScheduleOf(NodeId id) {
  (void)node(id);
  return schedule_[id];
}

LoopSpec& IrBuilder::LoopOf(NodeId id, std::size_t loop) {
  NodeSchedule& schedule = ScheduleOf(id);
  if (loop >= schedule.loops.size()) {
    RaiseSchedule(
        fmt::format("node {} has no loop {}: it has {}", id, loop, schedule.loops.size()));
  }
  return schedule.loops[loop];
}

void IrBuilder::SetPriority(NodeId id, double priority) { ScheduleOf(id).priority = priority; }

void IrBuilder::SetOrder(NodeId id, const Order& order) {
  NodeSchedule& schedule = ScheduleOf(id);
  std::vector<LoopSpec> loops;
  for (const auto& [dim, size] : order) {
    (void)var(dim);
    loops.push_back({.dim = dim, .size = size.first, .tail = size.second});
  }
  schedule.loops = std::move(loops);
}

void IrBuilder::SetReuse(NodeId id, std::size_t loop, bool reusable) {
  LoopOf(id, loop).reusable = reusable;
}

void IrBuilder::Annotate(NodeId id, std::size_t loop, looptree::Annotation annotation) {
  LoopOf(id, loop).annotation = annotation;
}

bool IrBuilder::RunsOver(NodeId id, DimId dim) const {
  const Node& node = program_.nodes[id];
  const auto has = [&](const Node& one) {
    return std::ranges::find(one.dims, dim) != one.dims.end();
  };
  if (has(node)) return true;
  if (node.op == looptree::Op::kView) return false;
  return std::ranges::any_of(node.inputs, [&](NodeId input) {
    return input < program_.nodes.size() && has(program_.nodes[input]);
  });
}

looptree::Checked<LoopTree> IrBuilder::Tree() const {
  Program program = program_;
  looptree::Schedule schedule = schedule_;
  for (NodeId id = 0; id < schedule.size(); ++id) {
    std::erase_if(schedule[id].loops,
                  [&](const LoopSpec& loop) { return !RunsOver(id, loop.dim); });
  }
  looptree::DimSet used;
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    for (const DimId dim : program.nodes[id].dims) {
      if (dim < looptree::kMaxDims) used.Add(dim);
    }
    std::vector<std::optional<std::int64_t>> covered(program.dims.size());
    const auto& loops = schedule_[id].loops;
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      auto& inner = covered[loop->dim];
      inner = looptree::CheckedMultiplyAdd(loop->size, inner.value_or(1), loop->tail);
      if (!inner) {
        return looptree::Reject(RejectionCode::kLimitFlops,
                                fmt::format("the loops over {} cover more than 2^63 elements",
                                            program.dims[loop->dim].name));
      }
    }
    for (DimId dim = 0; dim < program.dims.size(); ++dim) {
      if (covered[dim] && program.dims[dim].size == 0) program.dims[dim].size = *covered[dim];
    }
  }
  for (DimId dim = 0; dim < program.dims.size(); ++dim) {
    if (program.dims[dim].size != 0) continue;
    if (dim < looptree::kMaxDims && used.Has(dim)) {
      return looptree::Reject(
          RejectionCode::kInvalidBenchmark,
          fmt::format("no loop says how large {} is: set_order of a node that has it, or"
                      " create_var(\"{}\", size)",
                      program.dims[dim].name, program.dims[dim].name));
    }
    program.dims[dim].size = 1;  // no operation uses it
  }
  return LoopTree::Build(std::make_shared<const Program>(std::move(program)), std::move(schedule));
}

}  // namespace loopfleet::python
