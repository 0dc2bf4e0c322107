#pragma once
// IrBuilder: a program and its schedule under construction, in loop_tool's words: vars are
// dimensions, nodes operations, an order the loops of a node. Setters check that
// the node, the var or the loop is there; Tree() checks the rest.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::python {

class IrBuilder {
 public:
  using Size = std::pair<std::int64_t, std::int64_t>;  // size and tail
  using Order = std::vector<std::pair<looptree::DimId, Size>>;

  IrBuilder() = default;
  explicit IrBuilder(const looptree::LoopTree& tree)
      : program_(tree.program()), schedule_(tree.schedule()) {}

  // `size` 0: what the loops over it cover.
  looptree::DimId CreateVar(std::string name, std::int64_t size);
  // Raises ScheduleError if the var has another size already, or none can be this one.
  void SetSize(looptree::DimId var, std::int64_t size);
  looptree::NodeId CreateNode(looptree::Node node);
  void SetInputs(std::vector<looptree::NodeId> nodes) { program_.inputs = std::move(nodes); }
  void SetOutputs(std::vector<looptree::NodeId> nodes) { program_.outputs = std::move(nodes); }
  void SetPriority(looptree::NodeId node, double priority);
  // Replaces the node's loops; annotations and reuse are as at the start.
  void SetOrder(looptree::NodeId node, const Order& order);
  void SetReuse(looptree::NodeId node, std::size_t loop, bool reusable);
  void Annotate(looptree::NodeId node, std::size_t loop, looptree::Annotation annotation);

  const looptree::Program& program() const { return program_; }
  const looptree::Schedule& schedule() const { return schedule_; }
  // Raises ScheduleError for a number that is none.
  const looptree::Node& node(looptree::NodeId id) const;
  const looptree::Dim& var(looptree::DimId id) const;

  // A loop over a dimension that its node does not run over is left out, as in loop_tool: it would
  // only compute the same again.
  looptree::Checked<looptree::LoopTree> Tree() const;

 private:
  looptree::NodeSchedule& ScheduleOf(looptree::NodeId node);
  // Whether the node, or one that it reads, has the dimension.
  bool RunsOver(looptree::NodeId id, looptree::DimId dim) const;
  looptree::LoopSpec& LoopOf(looptree::NodeId node, std::size_t loop);

  looptree::Program program_;
  looptree::Schedule schedule_;  // one per node
};

}  // namespace loopfleet::python
