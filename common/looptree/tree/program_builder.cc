#include "common/looptree/tree/program_builder.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace loopfleet::looptree {

DimId ProgramBuilder::Dim(std::string name, std::int64_t size) {
  program_.dims.push_back({std::move(name), size});
  return static_cast<DimId>(program_.dims.size() - 1);
}

NodeId ProgramBuilder::Add(Node node) {
  program_.nodes.push_back(std::move(node));
  return static_cast<NodeId>(program_.nodes.size() - 1);
}

NodeId ProgramBuilder::Read(std::vector<DimId> dims) {
  program_.inputs.push_back(Add({.op = Op::kRead, .dims = std::move(dims)}));
  return program_.inputs.back();
}

NodeId ProgramBuilder::View(NodeId input, std::vector<DimId> dims, std::vector<ViewIndex> index) {
  return Add(
      {.op = Op::kView, .inputs = {input}, .dims = std::move(dims), .view = std::move(index)});
}

NodeId ProgramBuilder::GuardedView(NodeId input, std::vector<DimId> dims,
                                   std::vector<ViewIndex> index, double outside) {
  for (ViewIndex& map : index) map.guarded = true;
  return Add({.op = Op::kView,
              .inputs = {input},
              .dims = std::move(dims),
              .view = std::move(index),
              .outside = outside});
}

NodeId ProgramBuilder::Constant(double value, std::vector<DimId> dims) {
  return Add({.op = Op::kConstant, .dims = std::move(dims), .constant = value});
}

NodeId ProgramBuilder::Apply(Op op, std::vector<NodeId> inputs, std::vector<DimId> dims) {
  return Add({.op = op, .inputs = std::move(inputs), .dims = std::move(dims)});
}

NodeId ProgramBuilder::Write(NodeId result) { return Write(result, program_.nodes[result].dims); }

NodeId ProgramBuilder::Write(NodeId result, std::vector<DimId> dims) {
  program_.outputs.push_back(Apply(Op::kWrite, {result}, std::move(dims)));
  return program_.outputs.back();
}

Checked<LoopTree> ProgramBuilder::Build(std::span<const Loop> order, const Limits& limits) && {
  Schedule schedule(program_.nodes.size());
  for (NodeId id = 0; id < program_.nodes.size(); ++id) {
    const Node& node = program_.nodes[id];
    if (node.op == Op::kRead || node.op == Op::kView || node.op == Op::kConstant) continue;
    std::vector<DimId> dims = program_.ReducedDims(id);
    dims.insert(dims.end(), node.dims.begin(), node.dims.end());
    for (const Loop& loop : order) {
      if (std::ranges::find(dims, loop.dim) == dims.end()) continue;
      schedule[id].loops.push_back({.dim = loop.dim, .size = loop.size});
    }
  }
  return LoopTree::Build(std::make_shared<const Program>(std::move(program_)), std::move(schedule),
                         limits);
}

Checked<LoopTree> ProgramBuilder::Build(const Limits& limits) && {
  std::vector<Loop> order;
  for (DimId dim = 0; dim < program_.dims.size(); ++dim) {
    order.push_back({dim, program_.dims[dim].size});
  }
  return std::move(*this).Build(order, limits);
}

}  // namespace loopfleet::looptree
