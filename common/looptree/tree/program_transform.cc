#include "common/looptree/tree/program_transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/result.h"
#include "common/looptree/program/initial_value.h"
#include "common/looptree/program/program_facts.h"
#include "common/looptree/tree/operation_check.h"

namespace loopfleet::looptree {
namespace {

Checked<LoopTree> Built(Program program, Schedule schedule, const Limits& limits) {
  return LoopTree::Build(std::make_shared<const Program>(std::move(program)), std::move(schedule),
                         limits);
}

}  // namespace

Checked<LoopTree> CopyInput(const LoopTree& tree, NodeId node, std::size_t input,
                            const Limits& limits) {
  LF_TRY_VOID(CheckNode(tree, node));
  Program program = tree.program();
  Schedule schedule = tree.schedule();
  if (input >= program.nodes[node].inputs.size()) {
    return Illegal(fmt::format("{} has no input {}: it has {}", NodeText(tree, node), input,
                               program.nodes[node].inputs.size()));
  }
  const NodeId from = program.nodes[node].inputs[input];
  const auto copy = static_cast<NodeId>(program.nodes.size());
  NodeSchedule loops{.priority = schedule[node].priority};
  DimSet missing = tree.facts().nodes[from].dims;
  for (const LoopSpec& spec : schedule[node].loops) {
    if (!tree.facts().nodes[from].dims.Has(spec.dim)) continue;
    loops.loops.push_back(spec);
    DimSet covered;
    covered.Add(spec.dim);
    missing = missing - covered;
  }
  for (const DimId dim : program.nodes[from].dims) {
    if (missing.Has(dim)) loops.loops.push_back({.dim = dim, .size = program.dims[dim].size});
  }
  program.nodes.push_back({.op = Op::kCopy, .inputs = {from}, .dims = program.nodes[from].dims});
  program.nodes[node].inputs[input] = copy;
  schedule.push_back(std::move(loops));
  return Built(std::move(program), std::move(schedule), limits);
}

Checked<LoopTree> DeleteCopy(const LoopTree& tree, NodeId copy, const Limits& limits) {
  LF_TRY_VOID(CheckNode(tree, copy));
  Program program = tree.program();
  if (program.nodes[copy].op != Op::kCopy) {
    return Illegal(fmt::format("{} is no copy", NodeText(tree, copy)));
  }
  const NodeId from = program.nodes[copy].inputs[0];
  if (tree.facts().nodes[copy].dims != tree.facts().nodes[from].dims) {
    return Illegal(
        fmt::format("{} repeats its input along other dimensions", NodeText(tree, copy)));
  }
  const auto moved = [&](NodeId& id) {
    if (id == copy) id = from;
    if (id > copy) --id;
  };
  for (Node& node : program.nodes) {
    for (NodeId& input : node.inputs) moved(input);
  }
  for (NodeId& input : program.inputs) moved(input);
  for (NodeId& output : program.outputs) moved(output);
  program.nodes.erase(program.nodes.begin() + static_cast<std::ptrdiff_t>(copy));
  Schedule schedule = tree.schedule();
  schedule.erase(schedule.begin() + static_cast<std::ptrdiff_t>(copy));
  return Built(std::move(program), std::move(schedule), limits);
}

Checked<LoopTree> SwapNodes(const LoopTree& tree, NodeId one, NodeId other, const Limits& limits) {
  LF_TRY_VOID(CheckNode(tree, one));
  LF_TRY_VOID(CheckNode(tree, other));
  std::vector<NodeId> order = tree.facts().order;
  std::iter_swap(std::ranges::find(order, one), std::ranges::find(order, other));
  std::set<NodeId> done;
  for (const NodeId node : order) {
    for (const NodeId input : tree.program().nodes[node].inputs) {
      if (done.contains(input)) continue;
      return Illegal(fmt::format("{} and {} cannot be exchanged: {} reads {}", NodeText(tree, one),
                                 NodeText(tree, other), NodeText(tree, node),
                                 NodeText(tree, input)));
    }
    done.insert(node);
  }
  // With falling priorities the ready operation that is first in the order is always next.
  Schedule schedule = tree.schedule();
  for (std::size_t i = 0; i < order.size(); ++i) {
    schedule[order[i]].priority = static_cast<double>(order.size() - i);
  }
  return LoopTree::Build(tree.shared_program(), std::move(schedule), limits);
}

Checked<LoopTree> SwapVars(const LoopTree& tree, NodeId node, DimId one, DimId other,
                           const Limits& limits) {
  LF_TRY_VOID(CheckNode(tree, node));
  Program program = tree.program();
  std::vector<DimId>& dims = program.nodes[node].dims;
  if (program.nodes[node].op == Op::kRead) {
    return Illegal(fmt::format("{} is in its caller's memory", NodeText(tree, node)));
  }
  for (const DimId dim : {one, other}) {
    if (std::ranges::find(dims, dim) != dims.end()) continue;
    return Illegal(
        fmt::format("the result of {} has no dimension {}", NodeText(tree, node),
                    dim < program.dims.size() ? program.dims[dim].name : std::to_string(dim)));
  }
  std::iter_swap(std::ranges::find(dims, one), std::ranges::find(dims, other));
  return Built(std::move(program), tree.schedule(), limits);
}

namespace {

class Factorer {
 public:
  Factorer(const LoopTree& tree, NodeId node, TreeRef loop)
      : tree_(tree),
        node_(node),
        loop_(loop),
        program_(tree.program()),
        schedule_(tree.schedule()) {}

  Checked<LoopTree> Run(const Limits& limits) {
    LF_TRY_VOID(Measure());
    AddDims();
    if (!has_tail_) FindFollowers();
    const Node whole = program_.nodes[node_];
    const NodeSchedule loops = schedule_[node_];
    Node partial = whole;
    for (NodeId& input : partial.inputs) {
      input = has_tail_ ? Filled(input) : OverNewDims(input);
    }
    const bool innermost = own_.back() == loop_;
    partial.dims.insert(innermost ? partial.dims.end() : partial.dims.begin(), iterations_);
    const auto id = static_cast<NodeId>(program_.nodes.size());
    program_.nodes.push_back(std::move(partial));
    schedule_.push_back({.loops = Renamed(loops.loops), .priority = loops.priority});
    program_.nodes[node_].inputs = {id};
    std::erase_if(schedule_[node_].loops, [&](const LoopSpec& spec) {
      return tree_.facts().nodes[node_].reduced.Has(spec.dim);
    });
    schedule_[node_].loops.push_back({.dim = iterations_, .size = sizes_[1]});
    return Built(std::move(program_), std::move(schedule_), limits);
  }

 private:
  // What the loop's dimension is cut into: outside, iterations, inside.
  Checked<void> Measure() {
    const auto own = tree_.LoopsOf(node_);
    own_.assign(own.begin(), own.end());
    const auto at = std::ranges::find(own_, loop_);
    if (at == own_.end()) {
      return Illegal(fmt::format("{} does not run over L{}", NodeText(tree_, node_), loop_));
    }
    dim_ = tree_.nodes()[loop_].dim;
    const std::string& name = program_.dims[dim_].name;
    if (!tree_.facts().nodes[node_].reduced.Has(dim_)) {
      return Illegal(fmt::format("{} does not reduce over {}", NodeText(tree_, node_), name));
    }
    const std::vector<LoopSpec>& loops = schedule_[node_].loops;
    const auto position = static_cast<std::size_t>(at - own_.begin());
    for (std::size_t i = loops.size() - 1; i > position; --i) {
      if (loops[i].dim == dim_) sizes_[2] = loops[i].size * sizes_[2] + loops[i].tail;
    }
    const std::int64_t size = program_.dims[dim_].size;
    block_ = loops[position].size * sizes_[2] + loops[position].tail;
    sizes_[1] = (block_ + sizes_[2] - 1) / sizes_[2];
    sizes_[0] = (size + block_ - 1) / block_;
    has_tail_ = sizes_[1] * sizes_[2] != block_ || sizes_[0] * block_ != size;
    if (sizes_[0] * sizes_[2] == 1) {
      return Illegal(fmt::format("L{} is all of {}: split it first", loop_, name));
    }
    depth_ = tree_.nodes()[loop_].dim_depth;
    return {};
  }

  void AddDims() {
    constexpr std::array<std::string_view, 3> kSuffixes = {"_outer", "_part", "_inner"};
    for (std::size_t i = 0; i < 3; ++i) {
      if (i != 1 && sizes_[i] == 1) continue;
      new_dims_[i] = AddDim(kSuffixes[i], sizes_[i]);
    }
    iterations_ = *new_dims_[1];
  }

  DimId AddDim(std::string_view suffix, std::int64_t size) {
    std::string name = program_.dims[dim_].name + std::string(suffix);
    while (std::ranges::find(program_.dims, name, &Dim::name) != program_.dims.end()) name += '_';
    program_.dims.push_back({std::move(name), size});
    return static_cast<DimId>(program_.dims.size() - 1);
  }

  // Operations without a reduction that only the node, or others of them, read.
  void FindFollowers() {
    for (NodeId id = 0; id < program_.nodes.size(); ++id) {
      const Node& node = program_.nodes[id];
      const auto& facts = tree_.facts().nodes[id];
      const bool computes = IsArithmetic(node.op) || node.op == Op::kCopy;
      if (computes && facts.dims.Has(dim_) && facts.reduced.empty()) followers_.insert(id);
    }
    const auto read_elsewhere = [&](NodeId id) {
      return std::ranges::any_of(tree_.facts().nodes[id].consumers, [&](NodeId reader) {
        return reader != node_ && !followers_.contains(reader);
      });
    };
    while (std::erase_if(followers_, read_elsewhere) > 0) {
    }
  }

  std::vector<DimId> NewDims(const std::vector<DimId>& dims) const {
    std::vector<DimId> result;
    for (const DimId dim : dims) {
      if (dim != dim_) {
        result.push_back(dim);
        continue;
      }
      for (const auto& part : new_dims_) {
        if (part) result.push_back(*part);
      }
    }
    return result;
  }

  // The operand over the new dimensions.
  NodeId OverNewDims(NodeId id) {
    if (!tree_.facts().nodes[id].dims.Has(dim_)) return id;
    if (const auto known = over_new_dims_.find(id); known != over_new_dims_.end()) {
      return known->second;
    }
    if (followers_.contains(id)) {
      over_new_dims_[id] = id;
      for (std::size_t i = 0; i < program_.nodes[id].inputs.size(); ++i) {
        const NodeId input = OverNewDims(program_.nodes[id].inputs[i]);
        program_.nodes[id].inputs[i] = input;
      }
      program_.nodes[id].dims = NewDims(program_.nodes[id].dims);
      schedule_[id].loops = Renamed(schedule_[id].loops);
      return id;
    }
    const auto view = static_cast<NodeId>(program_.nodes.size());
    Node node{.op = Op::kView, .inputs = {id}, .dims = NewDims(program_.nodes[id].dims)};
    for (const DimId dim : program_.nodes[id].dims) {
      ViewIndex index{.input_dim = dim, .terms = {}};
      if (dim != dim_) {
        index.terms.push_back({dim, 1});
      } else {
        std::int64_t stride = sizes_[1] * sizes_[2];
        for (std::size_t i = 0; i < 3; ++i) {
          if (new_dims_[i]) index.terms.push_back({*new_dims_[i], stride});
          stride = i == 0 ? sizes_[2] : 1;
        }
      }
      node.view.push_back(std::move(index));
    }
    program_.nodes.push_back(std::move(node));
    schedule_.push_back({.priority = schedule_[id].priority});
    over_new_dims_[id] = view;
    return view;
  }

  // The operand over the new dimensions, filled up with what a reduction leaves as it is. Where
  // blocks end within an iteration, they are cut out first: what is beyond one is in the next.
  NodeId Filled(NodeId id) {
    if (!tree_.facts().nodes[id].dims.Has(dim_)) {
      // Combined once for each element of the dimension, no more often. Min and max do not mind.
      const Op op = program_.nodes[node_].op;
      if (op == Op::kMin || op == Op::kMax) return id;
      id = AddRepetition(id);
    }
    std::vector<AffineTerm> outer;
    std::vector<AffineTerm> inside = {{iterations_, sizes_[2]}};
    if (new_dims_[0]) outer.push_back({*new_dims_[0], block_});
    if (new_dims_[2]) inside.push_back({*new_dims_[2], 1});
    if (new_dims_[0] && sizes_[1] * sizes_[2] != block_) {
      const DimId block = AddDim("_block", block_);
      outer.push_back({block, 1});
      return AddView(AddView(id, dim_, outer), block, inside);
    }
    outer.insert(outer.end(), inside.begin(), inside.end());
    return AddView(id, dim_, outer);
  }

  // A view of the node in which `terms` stand for the dimension `cut`.
  NodeId AddView(NodeId id, DimId cut, const std::vector<AffineTerm>& terms) {
    Node view{.op = Op::kView, .inputs = {id}};
    for (const DimId dim : program_.nodes[id].dims) {
      const bool is_cut = dim == cut;
      const std::vector<AffineTerm> index = is_cut ? terms : std::vector<AffineTerm>{{dim, 1}};
      for (const AffineTerm& term : index) view.dims.push_back(term.dim);
      view.view.push_back({.input_dim = dim, .terms = index, .guarded = is_cut});
    }
    view.outside = Identity<double>(program_.nodes[node_].op);
    return Add(std::move(view));
  }

  // A view that repeats the node along the reduced dimension.
  NodeId AddRepetition(NodeId id) {
    Node view{.op = Op::kView, .inputs = {id}, .dims = program_.nodes[id].dims};
    for (const DimId dim : view.dims) view.view.push_back({.input_dim = dim, .terms = {{dim, 1}}});
    view.dims.push_back(dim_);
    return Add(std::move(view));
  }

  NodeId Add(Node view) {
    schedule_.push_back({.priority = schedule_[view.inputs[0]].priority});
    program_.nodes.push_back(std::move(view));
    return static_cast<NodeId>(program_.nodes.size() - 1);
  }

  // The loops over the dimension, as loops over the new ones: each by its depth if they are cut
  // like the node's, else one loop for each.
  std::vector<LoopSpec> Renamed(const std::vector<LoopSpec>& loops) const {
    std::vector<LoopSpec> same;
    for (const LoopSpec& spec : loops) {
      if (spec.dim == dim_) same.push_back(spec);
    }
    std::int64_t outside = 1;
    for (std::size_t i = 0; i < std::min<std::size_t>(depth_, same.size()); ++i) {
      outside *= same[i].tail == 0 ? same[i].size : 0;
    }
    const bool alike = same.size() > depth_ && outside == sizes_[0] &&
                       same[depth_].size == sizes_[1] && same[depth_].tail == 0;
    std::vector<LoopSpec> renamed;
    std::size_t depth = 0;
    for (LoopSpec spec : loops) {
      if (spec.dim != dim_) {
        renamed.push_back(spec);
        continue;
      }
      const std::size_t here = depth++;
      if (!alike && here > 0) continue;
      for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t part = here < depth_ ? 0 : here == depth_ ? 1 : 2;
        if (!new_dims_[i] || (alike && i != part)) continue;
        spec.dim = *new_dims_[i];
        if (!alike) spec = {.dim = spec.dim, .size = sizes_[i]};
        renamed.push_back(spec);
      }
    }
    return renamed;
  }

  const LoopTree& tree_;
  const NodeId node_;
  const TreeRef loop_;
  Program program_;
  Schedule schedule_;
  std::vector<TreeRef> own_;  // of the node
  DimId dim_ = 0;
  std::size_t depth_ = 0;  // loops over the dimension around the loop
  std::array<std::int64_t, 3> sizes_ = {1, 1, 1};
  std::int64_t block_ = 1;  // elements that the loop covers
  bool has_tail_ = false;   // the new dimensions cover more than the old one
  std::array<std::optional<DimId>, 3> new_dims_;
  DimId iterations_ = 0;
  std::set<NodeId> followers_;
  std::map<NodeId, NodeId> over_new_dims_;
};

}  // namespace

Checked<LoopTree> Rfactor(const LoopTree& tree, NodeId node, TreeRef loop, const Limits& limits) {
  LF_CHECK(loop < tree.nodes().size() && tree.IsLoop(loop), "L{} is not a loop", loop);
  LF_TRY_VOID(CheckNode(tree, node));
  return Factorer(tree, node, loop).Run(limits);
}

}  // namespace loopfleet::looptree
