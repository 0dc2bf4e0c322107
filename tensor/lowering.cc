#include "tensor/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "common/looptree/program/checked_math.h"
#include "common/looptree/tree/program_builder.h"
#include "tensor/shape_solver.h"
#include "tensor/tensor_error.h"

namespace loopfleet::tensor {
namespace {

using looptree::AffineTerm;
using looptree::DimId;
using looptree::NodeId;
using looptree::Op;
using looptree::ViewIndex;
using Place = std::uint32_t;
using Shapes = std::vector<std::vector<std::int64_t>>;

// Renames and reshapes have the elements of their input, in memory too.
bool HasElementsOfInput(const Node& node) {
  return node.kind == Node::Kind::kRename || node.kind == Node::Kind::kReshape;
}

// The node whose memory holds the elements of `place`, if any does: a leaf or a materialised one.
Place HolderOf(const std::vector<Node*>& nodes, Place place) {
  while (HasElementsOfInput(*nodes[place])) place = nodes[place]->inputs[0]->place;
  return place;
}

bool IsLoop(const Node& node) {
  return node.kind == Node::Kind::kPointwise || node.kind == Node::Kind::kReduce ||
         node.kind == Node::Kind::kMean || node.kind == Node::Kind::kConcat;
}

// A name for a dim that IR text and tree text can hold: cut where it and `suffix` are too long.
std::string Sanitized(const std::string& name, const std::string& suffix) {
  std::string text;
  for (const char letter : name) {
    text += std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' ? letter : '_';
  }
  return (text.empty() ? "_" : text.substr(0, looptree::kMaxNameBytes - suffix.size())) + suffix;
}

// Which slots of a segment are one dim of its program. Slots with one size need not be: two dims of
// one node are never one dim.
class DimClasses {
 public:
  DimClasses(const std::vector<Node*>& nodes, std::span<const Place> members)
      : nodes_(nodes), offsets_(nodes.size(), 0) {
    for (const Place place : members) {
      offsets_[place] = static_cast<std::uint32_t>(parents_.size());
      for (std::size_t axis = 0; axis < nodes[place]->symbols.size(); ++axis) {
        parents_.push_back(static_cast<std::uint32_t>(parents_.size()));
        places_.push_back({place});
      }
    }
  }

  std::uint32_t RootOf(Place place, std::size_t axis) {
    std::uint32_t slot = offsets_[place] + static_cast<std::uint32_t>(axis);
    while (parents_[slot] != slot) slot = parents_[slot] = parents_[parents_[slot]];
    return slot;
  }
  // False: it would make two dims of some node one.
  bool Unite(Place a, std::size_t a_axis, Place b, std::size_t b_axis) {
    std::uint32_t kept = RootOf(a, a_axis), gone = RootOf(b, b_axis);
    if (kept == gone) return true;
    if (places_[kept].size() < places_[gone].size()) std::swap(kept, gone);
    if (std::ranges::any_of(places_[gone], [&](Place place) { return Has(place, kept); })) {
      return false;
    }
    places_[kept].insert(places_[kept].end(), places_[gone].begin(), places_[gone].end());
    places_[gone].clear();
    parents_[gone] = kept;
    return true;
  }

 private:
  bool Has(Place place, std::uint32_t root) {
    for (std::size_t axis = 0; axis < nodes_[place]->symbols.size(); ++axis) {
      if (RootOf(place, axis) == root) return true;
    }
    return false;
  }

  const std::vector<Node*>& nodes_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> parents_;
  std::vector<std::vector<Place>> places_;  // of a root: the nodes with a dim of the class
};

// Builds the program of one segment.
class SegmentBuilder {
 public:
  // `members`: the nodes of the segment in order, the output last. Those in `whole`, and leaves,
  // are read from memory, unless they are the output.
  SegmentBuilder(const std::vector<Node*>& nodes, const Shapes& shapes,
                 std::span<const Place> members, const std::vector<bool>& whole)
      : nodes_(nodes),
        shapes_(shapes),
        members_(members),
        whole_(whole),
        classes_(nodes, members) {}

  looptree::Checked<LoweredSegment> Build(const looptree::Limits& limits) {
    for (const Place place : members_) UniteDims(place);
    NameClasses();
    const Place output = members_.back();
    values_.resize(nodes_.size());
    for (const Place place : members_) Emit(place);
    WriteOut(output);
    auto tree = std::move(builder_).Build(limits);
    if (!tree) return std::unexpected(tree.error());
    return LoweredSegment{.start = *std::move(tree), .inputs = inputs_, .output = output};
  }

  // What views read: computed before the others where the tree is refused as unsupported. After
  // Build().
  const std::vector<Place>& members_with_views() const { return viewed_; }

 private:
  struct Value {
    NodeId node = 0;
    std::vector<DimId> dims;  // per axis of the graph's node
  };

  bool IsRead(Place place) const {
    return place != members_.back() && (whole_[place] || nodes_[place]->kind == Node::Kind::kLeaf ||
                                        nodes_[place]->kind == Node::Kind::kReshape);
  }

  void UniteDims(Place place) {
    const Node& node = *nodes_[place];
    if (IsRead(place) || node.kind == Node::Kind::kView || node.kind == Node::Kind::kReshape ||
        node.kind == Node::Kind::kConcat) {
      if (IsRead(place)) return;
      // Dims that a view keeps.
      for (const NodePtr& input : OperandsOf(node)) {
        for (std::size_t axis = 0; axis < input->symbols.size(); ++axis) {
          if (const auto kept = KeptAxis(node, *input, axis)) {
            classes_.Unite(place, *kept, input->place, axis);
          }
        }
      }
      return;
    }
    for (const NodePtr& input : OperandsOf(node)) {
      for (std::size_t axis = 0; axis < input->symbols.size(); ++axis) {
        const int mine = node.kind == Node::Kind::kRename
                             ? static_cast<int>(axis)
                             : AxisOf(node.symbols, input->symbols[axis]);
        // Where it is refused, Operand puts a view between.
        if (mine >= 0) {
          classes_.Unite(place, static_cast<std::size_t>(mine), input->place, axis);
        }
      }
    }
  }

  // The axis of `node` that equals the axis of `input` point by point.
  static std::optional<std::size_t> KeptAxis(const Node& node, const Node& input,
                                             std::size_t axis) {
    if (node.kind == Node::Kind::kConcat) {
      return axis == node.axis ? std::nullopt : std::optional(axis);
    }
    if (node.kind != Node::Kind::kView) return std::nullopt;
    const Expr& index = node.index[axis];
    if (index.constant() != 0 || index.divisor() != 1 || index.terms().size() != 1) {
      return std::nullopt;
    }
    const Expr::Term& term = index.terms()[0];
    if (term.is_size || term.coefficient != 1 || term.symbol != input.symbols[axis]) {
      return std::nullopt;
    }
    const int mine = AxisOf(node.symbols, term.symbol);
    return mine < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(mine));
  }

  // The name of a class: of its last symbol that is not fresh, as its user gave it last.
  void NameClasses() {
    for (const Place place : members_) {
      for (std::size_t axis = 0; axis < nodes_[place]->symbols.size(); ++axis) {
        const Symbol& symbol = nodes_[place]->symbols[axis];
        const std::uint32_t root = classes_.RootOf(place, axis);
        const auto [known, is_first] = names_.emplace(root, symbol);
        if (!is_first && !symbol.is_fresh()) known->second = symbol;
      }
    }
  }

  DimId DimOf(Place place, std::size_t axis) {
    const std::uint32_t root = classes_.RootOf(place, axis);
    const auto known = dims_.find(root);
    if (known != dims_.end()) return known->second;
    const std::string given = names_.at(root).name();
    std::string name = Sanitized(given, "");
    for (int number = 1; !used_names_.insert(name).second; ++number) {
      name = Sanitized(given, fmt::format("_{}", number));
    }
    const DimId dim = builder_.Dim(name, shapes_[place][axis]);
    dims_.emplace(root, dim);
    return dim;
  }
  std::vector<DimId> DimsOf(Place place) {
    std::vector<DimId> dims;
    for (std::size_t axis = 0; axis < nodes_[place]->symbols.size(); ++axis) {
      dims.push_back(DimOf(place, axis));
    }
    return dims;
  }

  // The value at `place` with its axes named by `dims`.
  NodeId Renamed(Place place, const std::vector<DimId>& dims) {
    const Value& value = values_[place];
    if (value.dims == dims) return value.node;
    viewed_.push_back(place);
    std::vector<ViewIndex> index;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      index.push_back({.input_dim = value.dims[axis], .terms = {{dims[axis], 1}}});
    }
    return builder_.View(value.node, dims, std::move(index));
  }

  // The input of a pointwise operation or a reduction at `place`, under the names of its dims.
  NodeId Operand(Place place, const Node& input) {
    const Node& node = *nodes_[place];
    const Value& value = values_[input.place];
    std::vector<DimId> dims = value.dims;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const int mine = AxisOf(node.symbols, input.symbols[axis]);
      if (mine >= 0) dims[axis] = DimOf(place, static_cast<std::size_t>(mine));
    }
    return Renamed(input.place, dims);
  }

  void Emit(Place place) {
    const Node& node = *nodes_[place];
    Value& value = values_[place];
    if (IsRead(place)) {
      value.dims = DimsOf(place);
      value.node = builder_.Read(value.dims);
      inputs_.push_back(place);
      return;
    }
    switch (node.kind) {
      case Node::Kind::kLeaf:  // the output itself: written by WriteOut
        value.dims = DimsOf(place);
        value.node = builder_.Read(value.dims);
        inputs_.push_back(place);
        return;
      case Node::Kind::kConstant: value.node = builder_.Constant(node.value); return;
      case Node::Kind::kCount: value.node = builder_.Constant(NumberOf(node)); return;
      case Node::Kind::kPointwise: {
        std::vector<NodeId> operands;
        for (const NodePtr& input : node.inputs) operands.push_back(Operand(place, *input));
        value.dims = DimsOf(place);
        value.node = builder_.Apply(node.op, std::move(operands), value.dims);
        return;
      }
      case Node::Kind::kReduce:
      case Node::Kind::kMean: {
        const Node& input = *node.inputs[0];
        const NodeId operand = Operand(place, input);
        value.dims = DimsOf(place);
        const bool is_mean = node.kind == Node::Kind::kMean;
        value.node = builder_.Apply(is_mean ? Op::kAdd : node.op, {operand}, value.dims);
        if (is_mean) {
          double count = 1;
          for (std::size_t axis = 0; axis < input.symbols.size(); ++axis) {
            if (AxisOf(node.symbols, input.symbols[axis]) < 0) {
              count *= static_cast<double>(shapes_[input.place][axis]);
            }
          }
          value.node =
              builder_.Apply(Op::kMultiply, {value.node, builder_.Constant(1 / count)}, value.dims);
        }
        return;
      }
      case Node::Kind::kRename: {
        value.dims = DimsOf(place);
        value.node = Renamed(node.inputs[0]->place, value.dims);
        return;
      }
      case Node::Kind::kTranspose: {
        value.node = Operand(place, *node.inputs[0]);
        value.dims = DimsOf(place);
        return;
      }
      case Node::Kind::kView: EmitView(place); return;
      case Node::Kind::kConcat: EmitConcat(place); return;
      case Node::Kind::kReshape:
        throw TensorError(TensorError::Kind::kTensor, "a reshape has no operation of its own");
    }
  }

  void EmitView(Place place) {
    const Node& node = *nodes_[place];
    const Node& input = *node.inputs[0];
    const Value& viewed = values_[input.place];
    Value& value = values_[place];
    value.dims = DimsOf(place);
    if (place != members_.back() && ShowsAll(place)) {
      value.node = viewed.node;
      return;
    }
    std::vector<ViewIndex> index;
    for (std::size_t axis = 0; axis < node.index.size(); ++axis) {
      const Expr& expr = node.index[axis];
      ViewIndex& made = index.emplace_back();
      made.input_dim = viewed.dims[axis];
      made.constant = expr.constant();
      made.divisor = expr.divisor();
      for (const Expr::Term& term : expr.terms()) {
        if (term.is_size) {
          const auto sum = looptree::CheckedMultiplyAdd(
              term.coefficient, SizeNamed(node, term.symbol), made.constant);
          if (!sum) {
            throw TensorError(
                TensorError::Kind::kSizeConflict,
                fmt::format("{} in {} is more than 2^63", expr.ToString(), Describe(node)));
          }
          made.constant = *sum;
        } else {
          const int mine = AxisOf(node.symbols, term.symbol);
          made.terms.push_back({DimOf(place, static_cast<std::size_t>(mine)), term.coefficient});
        }
      }
    }
    value.node = builder_.GuardedView(viewed.node, value.dims, std::move(index), node.value);
    viewed_.push_back(input.place);
  }

  // Whether the view at `place` is its input, with its dims perhaps in another order.
  bool ShowsAll(Place place) const {
    const Node& node = *nodes_[place];
    const Node& input = *node.inputs[0];
    if (node.symbols.size() != input.symbols.size()) return false;
    for (std::size_t axis = 0; axis < input.symbols.size(); ++axis) {
      const auto kept = KeptAxis(node, input, axis);
      if (!kept || values_[place].dims[*kept] != values_[input.place].dims[axis]) return false;
    }
    return true;
  }

  // Of a kCount.
  double NumberOf(const Node& node) const {
    const Node& input = *node.inputs[0];
    double count = 1;
    for (const Expr& index : node.index) {
      const int axis = AxisOf(input.symbols, index.terms()[0].symbol);
      count *= static_cast<double>(shapes_[input.place][static_cast<std::size_t>(axis)]);
    }
    return node.op == Op::kDivide ? node.value / count : node.value * count;
  }

  std::int64_t SizeNamed(const Node& node, const Symbol& symbol) const {
    if (const int axis = AxisOf(node.symbols, symbol); axis >= 0) {
      return shapes_[node.place][static_cast<std::size_t>(axis)];
    }
    const Node& input = *node.inputs[0];
    return shapes_[input.place][static_cast<std::size_t>(AxisOf(input.symbols, symbol))];
  }

  // Each part reads 0 where the other one is.
  void EmitConcat(Place place) {
    const Node& node = *nodes_[place];
    Value& value = values_[place];
    value.dims = DimsOf(place);
    std::vector<NodeId> parts;
    std::int64_t start = 0;
    for (const NodePtr& input : node.inputs) {
      const Value& part = values_[input->place];
      std::vector<ViewIndex> index;
      for (std::size_t axis = 0; axis < part.dims.size(); ++axis) {
        index.push_back({.input_dim = part.dims[axis], .terms = {{value.dims[axis], 1}}});
      }
      index[node.axis].constant = -start;
      start += shapes_[input->place][node.axis];
      parts.push_back(builder_.GuardedView(part.node, value.dims, std::move(index)));
      viewed_.push_back(input->place);
    }
    value.node = builder_.Apply(Op::kAdd, std::move(parts), value.dims);
  }

  void WriteOut(Place place) {
    const Value& value = values_[place];
    // In the memory order of the graph's node, which may not be that of the operation.
    std::vector<ViewIndex> index;
    if (nodes_[place]->kind == Node::Kind::kTranspose) {
      const Node& input = *nodes_[place]->inputs[0];
      for (const Symbol& symbol : input.symbols) {
        const DimId dim =
            value.dims[static_cast<std::size_t>(AxisOf(nodes_[place]->symbols, symbol))];
        index.push_back({.input_dim = dim, .terms = {{dim, 1}}});
      }
      viewed_.push_back(place);
      builder_.Write(builder_.View(value.node, value.dims, std::move(index)));
      return;
    }
    builder_.Write(value.node);
  }

  const std::vector<Node*>& nodes_;
  const Shapes& shapes_;
  const std::span<const Place> members_;
  const std::vector<bool>& whole_;
  DimClasses classes_;
  std::map<std::uint32_t, Symbol> names_;
  std::map<std::uint32_t, DimId> dims_;
  std::set<std::string> used_names_;
  looptree::ProgramBuilder builder_;
  std::vector<Value> values_;
  std::vector<Place> inputs_;
  std::vector<Place> viewed_;
};

class Lowerer {
 public:
  Lowerer(const std::vector<Node*>& nodes, const Shapes& shapes, const looptree::Limits& limits)
      : nodes_(nodes),
        shapes_(shapes),
        limits_(limits),
        needed_(nodes.size(), false),
        whole_(nodes.size(), false),
        computed_(nodes.size(), 0) {
    needed_.back() = true;
    for (std::size_t place = nodes.size(); place-- > 0;) {
      if (!needed_[place]) continue;
      for (const NodePtr& input : OperandsOf(*nodes[place])) needed_[input->place] = true;
    }
  }

  Lowered Lower() {
    const auto root = static_cast<Place>(nodes_.size() - 1);
    const Place result = HolderOf(nodes_, root);
    for (Place place = 0; place < nodes_.size(); ++place) {
      if (needed_[place] && nodes_[place]->kind == Node::Kind::kReshape) {
        Materialise(HolderOf(nodes_, place));
      }
    }
    Materialise(result);
    while (!TryAll() || MaterialiseCompared()) {
    }
    return {.segments = std::move(segments_), .result = result};
  }

 private:
  void Materialise(Place place) {
    if (nodes_[place]->kind != Node::Kind::kLeaf) whole_[place] = true;
  }

  // False: another node has to be materialised first.
  bool TryAll() {
    segments_.clear();
    std::ranges::fill(computed_, 0);
    for (Place place = 0; place < nodes_.size(); ++place) {
      if (whole_[place] && !TryOne(place)) return false;
    }
    return true;
  }

  // What `equal` compares is computed in one segment alone: another one may round it otherwise, and
  // then nothing equals its own maximum. Whether another node has to be materialised for that.
  bool MaterialiseCompared() {
    bool is_new = false;
    for (Place place = 0; place < nodes_.size(); ++place) {
      const Node& node = *nodes_[place];
      if (!needed_[place] || node.kind != Node::Kind::kPointwise || node.op != Op::kEqual) continue;
      for (const NodePtr& input : node.inputs) {
        Place compared = input->place;
        while (!IsLoop(*nodes_[compared]) && !OperandsOf(*nodes_[compared]).empty()) {
          compared = nodes_[compared]->inputs[0]->place;
        }
        if (computed_[compared] < 2) continue;
        whole_[compared] = true;
        is_new = true;
      }
    }
    return is_new;
  }

  std::vector<Place> MembersOf(Place output) const {
    std::vector<bool> is_member(nodes_.size(), false);
    is_member[output] = true;
    for (Place place = output + 1; place-- > 0;) {
      const Node& node = *nodes_[place];
      if (!is_member[place]) continue;
      if (place != output && (whole_[place] || node.kind == Node::Kind::kReshape)) continue;
      for (const NodePtr& input : OperandsOf(node)) is_member[input->place] = true;
    }
    std::vector<Place> members;
    for (Place place = 0; place <= output; ++place) {
      if (is_member[place]) members.push_back(place);
    }
    return members;
  }

  bool TryOne(Place output) {
    const std::vector<Place> members = MembersOf(output);
    // Building the program of a huge graph only to have it refused would take long.
    const bool is_long = CountLoops(members) > limits_.tree_nodes;
    if (!is_long) {
      SegmentBuilder builder(nodes_, shapes_, members, whole_);
      auto segment = builder.Build(limits_);
      if (segment) {
        for (const Place place : members) {
          if (IsLoop(*nodes_[place]) && (place == output || !whole_[place])) ++computed_[place];
        }
        segments_.push_back(*std::move(segment));
        return true;
      }
      const looptree::RejectionCode code = segment.error().code;
      bool is_new = false;
      if (code == looptree::RejectionCode::kUnsupported) {
        for (const Place viewed : builder.members_with_views()) {
          is_new |= MaterialiseBelow(viewed, output);
        }
      }
      if (is_new) return false;
      if (code != looptree::RejectionCode::kLimitTree &&
          code != looptree::RejectionCode::kUnsupported) {
        throw TensorError(TensorError::Kind::kShape, segment.error().message);
      }
      if (!Cut(members)) {
        throw TensorError(TensorError::Kind::kShape, segment.error().message);
      }
      return false;
    }
    if (!Cut(members)) {
      throw TensorError(
          TensorError::Kind::kShape,
          fmt::format("{} has too many dims for one program", Describe(*nodes_[output])));
    }
    return false;
  }

  // Makes the computed node behind renames and views at `place` whole. False: it is already, or
  // there is none.
  bool MaterialiseBelow(Place place, Place output) {
    while (!IsLoop(*nodes_[place])) {
      if (OperandsOf(*nodes_[place]).empty() || whole_[place]) return false;
      place = nodes_[place]->inputs[0]->place;
    }
    if (whole_[place] || place == output) return false;
    whole_[place] = true;
    return true;
  }

  std::size_t CountLoops(const std::vector<Place>& members) const {
    std::size_t count = 0;
    for (const Place place : members) {
      if (IsLoop(*nodes_[place])) ++count;
    }
    return count;
  }

  // Makes operations whole, so that its programs get smaller. False: there is nothing to cut.
  bool Cut(const std::vector<Place>& members) {
    return CutEvenly(members) || CutInTheMiddle(members);
  }

  // So that no operation needs more than a number of others that are not whole. A gradient reads
  // what the loss computed in between: cut at few places, each program computes little again.
  bool CutEvenly(const std::vector<Place>& members) {
    const std::size_t most = limits_.tree_nodes / 2;
    std::map<Place, std::vector<Place>> needs;  // of an operation, itself among them, ascending
    bool is_new = false;
    for (const Place place : members) {
      const Node& node = *nodes_[place];
      if (whole_[place] && place != members.back()) continue;
      if (node.kind == Node::Kind::kReshape) continue;
      std::vector<Place> all = NeedsOf(node, needs);
      for (; all.size() >= most; all = NeedsOf(node, needs)) {
        const NodePtr& largest = *std::ranges::max_element(
            OperandsOf(node), {}, [&](const NodePtr& input) { return needs[input->place].size(); });
        if (!MaterialiseBelow(largest->place, members.back())) break;
        is_new = true;
        needs[largest->place].clear();
      }
      if (IsLoop(node)) all.push_back(place);
      needs[place] = std::move(all);
    }
    return is_new;
  }

  static std::vector<Place> NeedsOf(const Node& node,
                                    const std::map<Place, std::vector<Place>>& needs) {
    std::vector<Place> all;
    for (const NodePtr& input : OperandsOf(node)) {
      const auto found = needs.find(input->place);
      if (found == needs.end()) continue;
      std::vector<Place> both;
      std::ranges::set_union(all, found->second, std::back_inserter(both));
      all = std::move(both);
    }
    return all;
  }

  // Makes the operation in the middle whole, so that each half is smaller.
  bool CutInTheMiddle(const std::vector<Place>& members) {
    std::vector<Place> operations;
    for (const Place place : members) {
      if (place != members.back() && !whole_[place] && IsLoop(*nodes_[place])) {
        operations.push_back(place);
      }
    }
    if (operations.empty()) return false;
    whole_[operations[operations.size() / 2]] = true;
    return true;
  }

  const std::vector<Node*>& nodes_;
  const Shapes& shapes_;
  const looptree::Limits limits_;
  std::vector<bool> needed_;  // its elements, not its sizes alone
  std::vector<bool> whole_;
  std::vector<std::uint32_t> computed_;  // in how many segments
  std::vector<LoweredSegment> segments_;
};

}  // namespace

Lowered Lower(const std::vector<Node*>& nodes, const Shapes& shapes,
              const looptree::Limits& limits) {
  return Lowerer(nodes, shapes, limits).Lower();
}

}  // namespace loopfleet::tensor
