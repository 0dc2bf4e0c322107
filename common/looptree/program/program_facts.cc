#include "common/looptree/program/program_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/result.h"
#include "common/looptree/program/checked_math.h"
#include "common/looptree/program/view_map.h"

namespace loopfleet::looptree {
namespace {

std::unexpected<Rejection> Invalid(std::string message) {
  return Reject(RejectionCode::kInvalidBenchmark, std::move(message));
}

std::string NodeText(const Program& program, NodeId id) {
  return fmt::format("node {} ({})", id, OpName(program.nodes[id].op));
}

// Names appear in tree text, IR text and JSON: printable ASCII without the characters reserved
// there.
bool IsName(std::string_view name) {
  constexpr std::string_view kReserved = ":,;|/=\"\\'";
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return c > ' ' && c <= '~' && kReserved.find(c) == std::string_view::npos;
         });
}

Checked<void> CheckDims(const Program& program) {
  if (program.dims.size() > kMaxDims) {
    return Reject(RejectionCode::kLimitTree, fmt::format("{} dimensions; at most {} are allowed",
                                                         program.dims.size(), kMaxDims));
  }
  for (std::size_t i = 0; i < program.dims.size(); ++i) {
    const Dim& dim = program.dims[i];
    if (!IsName(dim.name)) {
      return Invalid(
          fmt::format("the name of dimension {} must be 1 to {} printable ASCII characters"
                      " other than blanks and : , ; | / = \" \\ '",
                      i, kMaxNameBytes));
    }
    if (dim.size < 1) {
      return Invalid(
          fmt::format("dimension {} has size {}; it must be at least 1", dim.name, dim.size));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (program.dims[j].name == dim.name) {
        return Invalid(fmt::format("two dimensions are named {}", dim.name));
      }
    }
  }
  return {};
}

struct Arity {
  std::size_t least;
  std::size_t most;
};

std::optional<Arity> ArityOf(Op op) {
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  switch (op) {
    case Op::kRead:
    case Op::kConstant: return Arity{0, 0};
    case Op::kWrite:
    case Op::kView:
    case Op::kCopy:
    case Op::kLog:
    case Op::kExp:
    case Op::kSqrt:
    case Op::kAbs:
    case Op::kNegate:
    case Op::kReciprocal:
    case Op::kTanh:
    case Op::kErf:
    case Op::kSin:
    case Op::kCos:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kSign: return Arity{1, 1};
    case Op::kSubtract:
    case Op::kDivide:
    case Op::kGreater:
    case Op::kGreaterEqual:
    case Op::kEqual:
    case Op::kPower: return Arity{2, 2};
    case Op::kSelect: return Arity{3, 3};
    case Op::kAdd:
    case Op::kMultiply:
    case Op::kMin:
    case Op::kMax: return Arity{1, kAny};
    case Op::kName: return std::nullopt;
  }
  return std::nullopt;
}

bool MayReduce(Op op) {
  return op == Op::kAdd || op == Op::kMultiply || op == Op::kMin || op == Op::kMax;
}

Checked<void> CheckNumber(const Program& program, NodeId id, std::string_view verb, double number) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (std::isnan(number)) {
    return Invalid(fmt::format("{} {} NaN; it must be a number", NodeText(program, id), verb));
  }
  if (!std::isinf(number) && std::abs(number) > kLargest) {
    return Invalid(fmt::format("{} {} {}, which float32 cannot hold; nearest: {}",
                               NodeText(program, id), verb, number,
                               std::copysign(kLargest, number)));
  }
  return {};
}

Checked<void> CheckNode(const Program& program, NodeId id) {
  const Node& node = program.nodes[id];
  const auto arity = ArityOf(node.op);
  if (!arity) {
    return Reject(RejectionCode::kUnsupported,
                  fmt::format("{} cannot be run: remove it", NodeText(program, id)));
  }
  if (node.inputs.size() < arity->least || node.inputs.size() > arity->most) {
    return Invalid(fmt::format("{} has {} inputs; it takes {}{}", NodeText(program, id),
                               node.inputs.size(), arity->least,
                               arity->most == arity->least ? "" : " or more"));
  }
  DimSet seen;
  for (const DimId dim : node.dims) {
    if (dim >= program.dims.size()) {
      return Invalid(fmt::format("{} names dimension {}; there are {}", NodeText(program, id), dim,
                                 program.dims.size()));
    }
    if (seen.Has(dim)) {
      return Invalid(fmt::format("{} names dimension {} twice", NodeText(program, id),
                                 program.dims[dim].name));
    }
    seen.Add(dim);
  }
  for (const NodeId input : node.inputs) {
    if (input >= program.nodes.size()) {
      return Invalid(fmt::format("{} reads node {}; there are {}", NodeText(program, id), input,
                                 program.nodes.size()));
    }
    if (program.nodes[input].op == Op::kWrite) {
      return Invalid(fmt::format("{} reads {}: a write has no result", NodeText(program, id),
                                 NodeText(program, input)));
    }
  }
  if (node.op != Op::kView && !node.view.empty()) {
    return Invalid(fmt::format("{} has index maps; only a view has", NodeText(program, id)));
  }
  if (node.op == Op::kConstant) return CheckNumber(program, id, "is", node.constant);
  if (node.op == Op::kView) return CheckNumber(program, id, "reads outside as", node.outside);
  return {};
}

DimSet SetOf(const std::vector<DimId>& dims) {
  DimSet set;
  for (const DimId dim : dims) set.Add(dim);
  return set;
}

// Checks that each input dim has exactly one index map, over the view's own dims, and that it stays
// inside the input.
Checked<void> CheckView(const Program& program, NodeId id) {
  const Node& node = program.nodes[id];
  const Node& input = program.nodes[node.inputs[0]];
  const DimSet own = SetOf(node.dims);
  if (node.view.size() != input.dims.size()) {
    return Invalid(fmt::format("{} must map each of the {} dimensions of its input",
                               NodeText(program, id), input.dims.size()));
  }
  for (const DimId dim : input.dims) {
    const auto map = std::find_if(node.view.begin(), node.view.end(),
                                  [&](const ViewIndex& index) { return index.input_dim == dim; });
    if (map == node.view.end()) {
      return Invalid(fmt::format("{} does not say where in dimension {} of its input it reads",
                                 NodeText(program, id), program.dims[dim].name));
    }
    std::optional<std::int64_t> low = map->constant;
    std::optional<std::int64_t> high = map->constant;
    DimSet used;
    for (const AffineTerm& term : map->terms) {
      if (term.dim >= program.dims.size() || !own.Has(term.dim) || used.Has(term.dim)) {
        return Invalid(
            fmt::format("{} must index with its own dimensions, each once", NodeText(program, id)));
      }
      used.Add(term.dim);
      auto& end = term.coefficient < 0 ? low : high;
      if (end) end = CheckedMultiplyAdd(program.dims[term.dim].size - 1, term.coefficient, *end);
    }
    if (map->divisor < 1 || (map->divisor > 1 && !map->guarded)) {
      return Invalid(fmt::format(
          "{} divides an index over dimension {} by {}; {}", NodeText(program, id),
          program.dims[dim].name, map->divisor,
          map->divisor < 1 ? "a divisor is at least 1" : "only a guarded index can be divided"));
    }
    if (map->guarded) {
      if (!low || !high || *low < -kMaxGuardedIndex || *high > kMaxGuardedIndex ||
          map->divisor > kMaxGuardedIndex) {
        return Invalid(fmt::format("{} computes an index over dimension {} beyond {}",
                                   NodeText(program, id), program.dims[dim].name,
                                   kMaxGuardedIndex));
      }
      continue;
    }
    if (!low || !high || *low < 0 || *high >= program.dims[dim].size) {
      return Invalid(fmt::format("{} leaves dimension {} of its input, which has {} elements",
                                 NodeText(program, id), program.dims[dim].name,
                                 program.dims[dim].size));
    }
  }
  return {};
}

// Guarded views may leave their inputs, so a chain of them could compute any index.
Checked<void> CheckViewChains(const Program& program) {
  const bool any_guard = std::ranges::any_of(program.nodes, [](const Node& node) {
    return std::ranges::any_of(node.view, &ViewIndex::guarded);
  });
  if (!any_guard) return {};
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    NodeId at = id;
    ViewMap map = IdentityMap(program, at);
    while (program.nodes[at].op == Op::kView) {
      auto composed = ThroughView(program, at, map);
      if (!composed) {
        return Invalid(fmt::format("{} reads {} at an index beyond {}: copy a view between the two",
                                   NodeText(program, id), NodeText(program, at), kMaxGuardedIndex));
      }
      map = *std::move(composed);
      at = program.nodes[at].inputs[0];
    }
  }
  return {};
}

Checked<void> CheckEnds(const Program& program) {
  const auto check = [&](const std::vector<NodeId>& ids, Op op) -> Checked<void> {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= program.nodes.size() || program.nodes[ids[i]].op != op) {
        return Invalid(fmt::format("{} {} must be a {} node", op == Op::kRead ? "input" : "output",
                                   i, OpName(op)));
      }
      if (std::find(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i), ids[i]) !=
          ids.begin() + static_cast<std::ptrdiff_t>(i)) {
        return Invalid(fmt::format("node {} is listed twice", ids[i]));
      }
    }
    for (NodeId id = 0; id < program.nodes.size(); ++id) {
      if (program.nodes[id].op == op && std::find(ids.begin(), ids.end(), id) == ids.end()) {
        return Invalid(fmt::format("{} is not among the program's {}", NodeText(program, id),
                                   op == Op::kRead ? "inputs" : "outputs"));
      }
    }
    return {};
  };
  if (program.outputs.empty()) return Invalid("the program has no outputs");
  if (program.inputs.empty()) return Invalid("the program has no inputs");
  LF_TRY_VOID(check(program.inputs, Op::kRead));
  LF_TRY_VOID(check(program.outputs, Op::kWrite));
  return {};
}

void CollectNodeFacts(const Program& program, ProgramFacts& facts) {
  facts.nodes.resize(program.nodes.size());
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    const Node& node = program.nodes[id];
    ProgramFacts::NodeFacts& self = facts.nodes[id];
    self.dims = SetOf(node.dims);
    facts.has_views |= node.op == Op::kView;
    self.iteration = self.dims;
    for (const NodeId input : node.inputs) {
      if (node.op != Op::kView) self.iteration = self.iteration | SetOf(program.nodes[input].dims);
      auto& consumers = facts.nodes[input].consumers;
      if (consumers.empty() || consumers.back() != id) consumers.push_back(id);
    }
    self.reduced = self.iteration - self.dims;
  }
}

Checked<void> CheckReductions(const Program& program, const ProgramFacts& facts) {
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    if (!facts.nodes[id].reduced.empty() && !MayReduce(program.nodes[id].op)) {
      return Invalid(
          fmt::format("{} lacks dimensions of its inputs; only add, multiply, min and max"
                      " reduce",
                      NodeText(program, id)));
    }
  }
  return {};
}

void CollectBases(const Program& program, ProgramFacts& facts) {
  facts.base.resize(program.dims.size());
  for (DimId dim = 0; dim < program.dims.size(); ++dim) facts.base[dim] = dim;
  for (const NodeId id : facts.order) {  // producers first, so that bases are transitive
    const Node& node = program.nodes[id];
    if (node.op != Op::kView) continue;
    const DimSet input_dims = facts.nodes[node.inputs[0]].dims;
    for (const ViewIndex& index : node.view) {
      for (const AffineTerm& term : index.terms) {
        if (!input_dims.Has(term.dim)) facts.base[term.dim] = facts.base[index.input_dim];
      }
    }
  }
}

// Spec B.3: the inputs in order, then operations as they become ready, highest priority first.
Checked<void> CollectOrder(const Program& program, ProgramFacts& facts) {
  std::vector<NodeId> frontier = program.inputs;
  std::vector<std::size_t> awaited(program.nodes.size(), 0);  // distinct inputs not placed yet
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    if (program.nodes[id].op == Op::kConstant) frontier.push_back(id);
    for (const NodeId consumer : facts.nodes[id].consumers) ++awaited[consumer];
  }
  while (!frontier.empty()) {
    std::stable_sort(frontier.begin(), frontier.end(),
                     [&](NodeId a, NodeId b) { return facts.priorities[a] > facts.priorities[b]; });
    const NodeId current = frontier.front();
    frontier.erase(frontier.begin());
    facts.order.push_back(current);
    const auto& consumers = facts.nodes[current].consumers;
    for (auto consumer = consumers.rbegin(); consumer != consumers.rend(); ++consumer) {
      if (--awaited[*consumer] == 0) frontier.push_back(*consumer);
    }
  }
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    if (awaited[id] > 0) {
      return Invalid(fmt::format("{} can never run: it depends on itself", NodeText(program, id)));
    }
  }
  return {};
}

std::optional<std::int64_t> PointCount(const Program& program, DimSet dims) {
  std::optional<std::int64_t> count = 1;
  for (DimId dim = 0; dim < program.dims.size(); ++dim) {
    if (count && dims.Has(dim)) count = CheckedMultiply(*count, program.dims[dim].size);
  }
  return count;
}

// Limits::flop_count also bounds the points of operations that do not count as work.
Checked<void> CollectCosts(const Program& program, const Limits& limits, ProgramFacts& facts) {
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    const Node& node = program.nodes[id];
    const auto points = PointCount(program, facts.nodes[id].iteration);
    if (!points || static_cast<std::uint64_t>(*points) > limits.flop_count) {
      return Reject(RejectionCode::kLimitFlops,
                    fmt::format("{} runs over more than {} points", NodeText(program, id),
                                limits.flop_count));
    }
    if (IsArithmetic(node.op)) facts.flop_count += static_cast<std::uint64_t>(*points);
    if (facts.flop_count > limits.flop_count) {
      return Reject(RejectionCode::kLimitFlops,
                    fmt::format("the program needs more than {} flop", limits.flop_count));
    }
    if (node.op != Op::kRead && node.op != Op::kWrite) continue;
    const auto elements = PointCount(program, facts.nodes[id].dims);
    const auto bytes = elements ? CheckedMultiply(*elements, sizeof(float)) : std::nullopt;
    if (bytes) facts.tensor_bytes += static_cast<std::uint64_t>(*bytes);
    if (!bytes || static_cast<std::uint64_t>(*bytes) > limits.footprint_bytes ||
        facts.tensor_bytes > limits.footprint_bytes) {
      return Reject(RejectionCode::kLimitFootprint,
                    fmt::format("the tensors need more than {} bytes", limits.footprint_bytes));
    }
  }
  return {};
}

}  // namespace

Checked<std::shared_ptr<const ProgramFacts>> ProgramFacts::Of(const Program& program,
                                                              std::span<const double> priorities,
                                                              const Limits& limits) {
  if (program.nodes.size() > limits.tree_nodes) {
    return Reject(RejectionCode::kLimitTree, fmt::format("{} operations; at most {} are allowed",
                                                         program.nodes.size(), limits.tree_nodes));
  }
  LF_TRY_VOID(CheckDims(program));
  for (NodeId id = 0; id < program.nodes.size(); ++id) LF_TRY_VOID(CheckNode(program, id));
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    if (program.nodes[id].op == Op::kView) LF_TRY_VOID(CheckView(program, id));
  }
  LF_TRY_VOID(CheckEnds(program));
  auto facts = std::make_shared<ProgramFacts>();
  facts->priorities.assign(priorities.begin(), priorities.end());
  CollectNodeFacts(program, *facts);
  LF_TRY_VOID(CheckReductions(program, *facts));
  LF_TRY_VOID(CollectOrder(program, *facts));
  LF_TRY_VOID(CheckViewChains(program));  // once no view can read itself
  CollectBases(program, *facts);
  LF_TRY_VOID(CollectCosts(program, limits, *facts));
  return facts;
}

std::shared_ptr<const ProgramFacts> ProgramFacts::OfValid(const Program& program) {
  const std::vector<double> priorities(program.nodes.size(), 0.0);
  Limits limits;
  limits.flop_count = limits.footprint_bytes = std::numeric_limits<std::uint64_t>::max();
  limits.tree_nodes = std::numeric_limits<std::uint32_t>::max();
  auto facts = Of(program, priorities, limits);
  LF_CHECK(facts.has_value(), "{}", facts.error().message);
  return *std::move(facts);
}

}  // namespace loopfleet::looptree
