#include "client/python/tree_binding.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/python/ir_builder.h"
#include "client/python/loop_names.h"
#include "client/python/schedule_error.h"
#include "client/python/view_equations.h"
#include "common/base/suggestion.h"
#include "common/looptree/actions/action_path.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/features/graph.h"
#include "common/looptree/program/program_facts.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/annotation_text.h"
#include "common/looptree/tree/key.h"
#include "common/looptree/tree/program_transform.h"
#include "common/looptree/tree/transform.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using looptree::Annotation;
using looptree::DimId;
using looptree::LoopTree;
using looptree::NodeId;
using looptree::Op;
using looptree::TreeNode;
using looptree::TreeRef;

bool IsLoop(const LoopTree& tree, TreeRef ref) {
  return tree.nodes()[ref].kind == TreeNode::Kind::kLoop;
}

// A word without an effect is taken, with a warning.
Annotation AnnotationNamed(const std::string& word) {
  const auto annotation = looptree::AnnotationOfWord(word);
  if (!annotation) {
    RaiseSchedule(
        fmt::format("'{}' is no annotation: a word has no comma, colon or line break, and a "
                    "process knows 60,000",
                    word));
  }
  if (looptree::EffectOf(*annotation) == *annotation) return *annotation;
  constexpr std::string_view kWithEffect[] = {"unroll", "vectorize", "parallel", "cpu_parallel",
                                              "thread"};
  const std::string text = fmt::format(
      "the annotation '{}' is printed and has no effect; unroll, vectorize and parallel (or"
      " cpu_parallel, thread) have one, '' is none{}",
      word, NearestSuffix(word, kWithEffect));
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0) throw nb::python_error();
  return *annotation;
}

LoopTree Opened(const std::string& source) {
  const bool is_uri = source.find("://") != std::string::npos && source.find('\n') == source.npos;
  if (!is_uri) return OrRaiseSchedule(looptree::ParseIr(source));
  return OrRaiseSchedule(looptree::OpenBenchmark(looptree::BenchmarkUri{source})).start;
}

// ---- reading ------------------------------------------------------------------------------------

// -1 is above the roots, as in the original.
std::optional<TreeRef> RootOr(const LoopTree& tree, nb::handle ref) {
  if (ref.is_none()) return std::nullopt;
  if (nb::isinstance<nb::int_>(ref) && nb::cast<std::int64_t>(ref) == -1) return std::nullopt;
  return NodeNamed(tree, ref);
}

std::pair<TreeRef, TreeRef> RangeOf(const LoopTree& tree, nb::handle root) {
  const auto ref = RootOr(tree, root);
  if (!ref) return {0, static_cast<TreeRef>(tree.nodes().size())};
  return {*ref, tree.nodes()[*ref].end};
}

void WalkTree(const LoopTree& tree, const nb::callable& callback, nb::handle root) {
  const auto [begin, end] = RangeOf(tree, root);
  for (TreeRef ref = begin; ref < end; ++ref) {
    callback(ref, tree.nodes()[ref].depth - tree.nodes()[begin].depth);
  }
}

std::vector<TreeRef> NodesOfKind(const LoopTree& tree, nb::handle root, bool loops) {
  const auto [begin, end] = RangeOf(tree, root);
  std::vector<TreeRef> refs;
  for (TreeRef ref = begin; ref < end; ++ref) {
    if (IsLoop(tree, ref) == loops) refs.push_back(ref);
  }
  return refs;
}

// How many loops over the same dimension, as deep in it, come before.
std::int64_t OrdinalOf(const LoopTree& tree, TreeRef ref) {
  const auto nodes = tree.nodes();
  return std::count_if(nodes.begin(), nodes.begin() + ref, [&](const TreeNode& node) {
    return node.kind == TreeNode::Kind::kLoop && node.dim == nodes[ref].dim &&
           node.dim_depth == nodes[ref].dim_depth;
  });
}

// The loop of `tree` that is nearest to one of `other`: by dimension, then depth within it, then
// place among those.
TreeRef MapRef(const LoopTree& tree, nb::handle name, const LoopTree& other) {
  const TreeRef ref = NodeNamed(other, name);
  const TreeNode& there = other.nodes()[ref];
  if (!IsLoop(other, ref)) {
    const bool exists = there.node < tree.program().nodes.size();
    if (const auto leaf = exists ? tree.LeafOf(there.node) : std::nullopt) return *leaf;
    RaiseSchedule(fmt::format("%{} of the other tree has no line in this one", there.node));
  }
  std::optional<std::tuple<bool, std::int64_t, std::int64_t, TreeRef>> nearest;
  for (TreeRef at = 0; at < tree.nodes().size(); ++at) {
    if (!IsLoop(tree, at)) continue;
    const TreeNode& here = tree.nodes()[at];
    const bool other_dim =
        tree.program().dims[here.dim].name != other.program().dims[there.dim].name;
    const auto depths_apart =
        static_cast<std::int64_t>(here.dim_depth) - static_cast<std::int64_t>(there.dim_depth);
    const auto rank = std::tuple(other_dim, std::abs(depths_apart),
                                 std::abs(OrdinalOf(tree, at) - OrdinalOf(other, ref)), at);
    if (!nearest || rank < *nearest) nearest = rank;
  }
  if (!nearest) RaiseSchedule("the tree has no loops");
  return std::get<3>(*nearest);
}

// Whether the loop's iterations could run at the same time: no operation in it sums over it.
bool TriviallyParallel(const LoopTree& tree, nb::handle name) {
  const TreeRef loop = LoopNamed(tree, name);
  for (TreeRef ref = loop + 1; ref < tree.nodes()[loop].end; ++ref) {
    if (IsLoop(tree, ref)) continue;
    if (tree.facts().nodes[tree.nodes()[ref].node].reduced.Has(tree.nodes()[loop].dim))
      return false;
  }
  return true;
}

std::vector<std::pair<std::string, std::int64_t>> BufferOf(const LoopTree& tree, nb::handle ref) {
  const NodeId node = OperationNamed(tree, ref);
  std::vector<std::pair<std::string, std::int64_t>> extents;
  for (const DimId dim : tree.program().nodes[node].dims) {
    extents.emplace_back(tree.program().dims[dim].name, tree.BufferExtent(node, dim));
  }
  return extents;
}

// Of the text of a tree, which has a line for each loop and operation.
std::string LineOf(const std::string& text, TreeRef ref) {
  std::size_t begin = 0;
  for (TreeRef line = 0; line < ref; ++line) begin = text.find('\n', begin) + 1;
  begin = text.find_first_not_of(' ', begin);
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::string DumpTree(const LoopTree& tree, nb::handle what) {
  const std::string whole = looptree::TreeText(tree, {});
  if (what.is_none()) return whole;
  if (!nb::isinstance<nb::callable>(what)) return LineOf(whole, NodeNamed(tree, what));
  std::string text;
  for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    text.append(tree.nodes()[ref].depth, ' ');
    text += LineOf(whole, ref) + " " + nb::cast<std::string>(nb::str(what(ref))) + "\n";
  }
  return text;
}

// ---- transformations ----------------------------------------------------------------------------

LoopTree SwapLoops(const LoopTree& tree, const nb::object& one, const nb::object& other) {
  const auto loops = LoopsNamed(tree, {one, other});
  return OrRaiseSchedule(looptree::Swap(tree, loops[0], loops[1]));
}

LoopTree TrySwap(const LoopTree& tree, const nb::object& one, const nb::object& other) {
  if (NamesOperation(tree, one) && NamesOperation(tree, other)) {
    return looptree::SwapNodes(tree, OperationNamed(tree, one), OperationNamed(tree, other))
        .value_or(tree);
  }
  if (NamesOperation(tree, one) || NamesOperation(tree, other)) return tree;
  const auto loops = LoopsNamed(tree, {one, other});
  return looptree::Swap(tree, loops[0], loops[1]).value_or(tree);
}

LoopTree ReorderLoops(const LoopTree& tree, const nb::args& names) {
  std::vector<nb::object> loops;
  for (const nb::handle name : names) {
    if (nb::isinstance<nb::list>(name) || nb::isinstance<nb::tuple>(name)) {
      for (const nb::handle inside : name) loops.push_back(nb::borrow(inside));
    } else {
      loops.push_back(nb::borrow(name));
    }
  }
  return OrRaiseSchedule(looptree::Reorder(tree, LoopsNamed(tree, loops)));
}

LoopTree MergeOne(const LoopTree& tree, nb::handle loop) {
  return OrRaiseSchedule(looptree::MergeLoop(tree, LoopNamed(tree, loop))).value_or(tree);
}

LoopTree AnnotateOne(const LoopTree& tree, nb::handle loop, Annotation annotation) {
  return OrRaiseSchedule(looptree::Annotate(tree, LoopNamed(tree, loop), annotation));
}

DimId DimNamed(const LoopTree& tree, nb::handle name) {
  if (nb::isinstance<nb::int_>(name)) {
    const auto number = nb::cast<std::int64_t>(name);
    if (number < 0 || number >= static_cast<std::int64_t>(tree.program().dims.size())) {
      RaiseSchedule(fmt::format("there is no dimension {}: the program has {}", number,
                                tree.program().dims.size()));
    }
    return static_cast<DimId>(number);
  }
  const auto text = nb::cast<std::string>(name);
  std::vector<std::string_view> names;
  for (DimId dim = 0; dim < tree.program().dims.size(); ++dim) {
    if (tree.program().dims[dim].name == text) return dim;
    names.push_back(tree.program().dims[dim].name);
  }
  RaiseSchedule(fmt::format("there is no dimension '{}'{}", text, NearestSuffix(text, names)));
}

// A loop, or an operation as in the original: the innermost of its loops that it shares, or for
// `reusable` the outermost that it does not.
LoopTree ChangeReuse(const LoopTree& tree, nb::handle name, bool reusable) {
  const TreeRef ref = NodeNamed(tree, name);
  if (IsLoop(tree, ref)) {
    return OrRaiseSchedule(reusable ? looptree::IncreaseReuse(tree, ref)
                                    : looptree::DecreaseReuse(tree, ref));
  }
  const NodeId node = tree.nodes()[ref].node;
  const auto own = tree.LoopsOf(node);
  const auto& specs = tree.schedule()[node].loops;
  std::optional<TreeRef> chosen;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].reusable != reusable && (!reusable || !chosen)) chosen = own[i];
  }
  if (!chosen) return tree;
  return OrRaiseSchedule(reusable ? looptree::EnableReuse(tree, *chosen, node)
                                  : looptree::DisableReuse(tree, *chosen, node));
}

// loop_tool numbers the operation as the program does where it numbers loops, too.
NodeId ProgramNode(const LoopTree& tree, nb::handle node) {
  if (!nb::isinstance<nb::int_>(node)) return OperationNamed(tree, node);
  return OperationNamed(tree, nb::str(("%" + nb::cast<std::string>(nb::str(node))).c_str()));
}

std::optional<std::vector<std::string>> ActionsFrom(const LoopTree& tree, const LoopTree& start) {
  const auto actions = looptree::ActionPath(start, tree);
  if (!actions) return std::nullopt;
  std::vector<std::string> names;
  for (const looptree::Action& action : *actions) names.push_back(looptree::ActionName(action));
  return names;
}

void BindReading(nb::class_<LoopTree>& tree) {
  tree.def("walk", &WalkTree, "callback"_a, "root"_a = nb::none(),
           "Calls callback(ref, depth) for each line, from the top, in the tree or below a node.")
      .def(
          "children", [](const LoopTree& t, nb::handle ref) { return t.Children(RootOr(t, ref)); },
          "ref"_a)
      .def(
          "parent",
          [](const LoopTree& t, nb::handle ref) -> std::int64_t {
            const TreeRef parent = t.nodes()[NodeNamed(t, ref)].parent;
            return parent == looptree::kNoParent ? -1 : static_cast<std::int64_t>(parent);
          },
          "ref"_a, "-1 of a root.")
      .def(
          "leaves", [](const LoopTree& t, nb::handle root) { return NodesOfKind(t, root, false); },
          "root"_a = nb::none(), "The operations, in the tree or below a node.")
      .def_prop_ro("roots", [](const LoopTree& t) { return t.Children(std::nullopt); })
      .def_prop_ro("loops", [](const LoopTree& t) { return NodesOfKind(t, nb::none(), true); })
      .def(
          "loop", [](const LoopTree& t, nb::handle loop) { return LoopAt(t, LoopNamed(t, loop)); },
          "loop"_a)
      .def(
          "is_loop", [](const LoopTree& t, nb::handle ref) { return IsLoop(t, NodeNamed(t, ref)); },
          "ref"_a)
      .def(
          "ir_node", [](const LoopTree& t, nb::handle ref) { return OperationNamed(t, ref); },
          "ref"_a, "The number of an operation in the program: 5 for %5.")
      .def(
          "next_ref",
          [](const LoopTree& t, nb::handle ref) {
            return std::min(NodeNamed(t, ref) + 1, static_cast<TreeRef>(t.nodes().size() - 1));
          },
          "ref"_a, "The next line; the last is its own.")
      .def(
          "previous_ref",
          [](const LoopTree& t, nb::handle ref) {
            const TreeRef at = NodeNamed(t, ref);
            return at == 0 ? at : at - 1;
          },
          "ref"_a, "The line before; the first is its own.")
      .def("map_ref", &MapRef, "ref"_a, "tree"_a,
           "The line of this tree nearest to one of another, by dimension, depth and place.")
      .def("trivially_parallel", &TriviallyParallel, "loop"_a,
           "Whether no operation in the loop reduces over it.")
      .def(
          "annotation",
          [](const LoopTree& t, nb::handle loop) {
            return LoopAt(t, LoopNamed(t, loop)).annotation;
          },
          "loop"_a)
      .def("flops", [](const LoopTree& t) { return looptree::FlopCount(t.program()); })
      .def("dump", &DumpTree, "callback"_a = nb::none(),
           "The text, one line of it, or the text with what a callable gives for each ref.")
      .def("__str__", [](const LoopTree& t) { return looptree::TreeText(t, {}); })
      .def("__repr__", &DumpTree, "callback"_a = nb::none())
      .def("__eq__",
           [](const LoopTree& t, nb::handle other) {
             return nb::isinstance<LoopTree>(other) &&
                    looptree::KeyOf(t) == looptree::KeyOf(nb::cast<const LoopTree&>(other));
           })
      .def("__hash__",
           [](const LoopTree& t) {
             return nb::hash(nb::str(looptree::KeyOf(t).ToString().c_str()));
           })
      .def(
          "serialize", [](const LoopTree& t) { return looptree::IrTextOf(t); },
          "The IR text, program and schedule. IR.serialize keeps annotations without an effect.")
      .def_prop_ro("ir", [](const LoopTree& t) { return IrBuilder(t); })
      .def_prop_ro("tree_key", [](const LoopTree& t) { return looptree::KeyOf(t).ToString(); })
      .def_prop_ro("program_key",
                   [](const LoopTree& t) { return looptree::ProgramKeyOf(t.program()).ToString(); })
      .def_prop_ro("scratch_bytes", &LoopTree::ScratchBytes)
      .def("buffer", &BufferOf, "ref"_a,
           "(dimension, elements) of the buffer between an operation and its readers.")
      .def(
          "actions_from", &ActionsFrom, "start"_a,
          "The actions, from cursor 0 under the rules `structural`, that lead from `start` to this "
          "tree; None if no sequence is known.");
}

void BindTransformations(nb::class_<LoopTree>& tree) {
  tree.def(
          "split",
          [](const LoopTree& t, nb::handle loop, std::int64_t inner) {
            return OrRaiseSchedule(looptree::SplitLoop(t, LoopNamed(t, loop), inner));
          },
          "loop"_a, "inner"_a)
      .def("merge", &MergeOne, "loop"_a, "With the loop around it; unchanged if there is none.")
      .def("merge_all", [](const LoopTree& t) { return OrRaiseSchedule(looptree::MergeAll(t)); })
      .def("swap", &SwapLoops, "one"_a, "other"_a)
      .def("swap_loops", &SwapLoops, "one"_a, "other"_a)
      .def("try_swap", &TrySwap, "one"_a, "other"_a,
           "Loops, or operations as swap_nodes does; unchanged if they cannot be exchanged.")
      .def("reorder", &ReorderLoops, "loops"_a, "Loops of one nest, outermost first.")
      .def(
          "annotate",
          [](const LoopTree& t, nb::handle loop, const std::string& word) {
            return AnnotateOne(t, loop, AnnotationNamed(word));
          },
          "loop"_a, "word"_a,
          "unroll, vectorize, parallel (cpu_parallel, thread), or \"\" for none. Any other word is "
          "printed and has no effect: it is no part of the tree's key or of serialize(), and a "
          "UserWarning says so.")
      .def(
          "unroll",
          [](const LoopTree& t, nb::handle loop) {
            return AnnotateOne(t, loop, Annotation::kUnroll);
          },
          "loop"_a)
      .def(
          "vectorize",
          [](const LoopTree& t, nb::handle loop) {
            return AnnotateOne(t, loop, Annotation::kVectorize);
          },
          "loop"_a)
      .def(
          "parallel",
          [](const LoopTree& t, nb::handle loop) {
            return AnnotateOne(t, loop, Annotation::kThread);
          },
          "loop"_a)
      .def(
          "clear",
          [](const LoopTree& t, nb::handle loop) {
            return AnnotateOne(t, loop, Annotation::kNone);
          },
          "loop"_a)
      .def(
          "add_loop",
          [](const LoopTree& t, nb::handle var, nb::handle parent) {
            std::optional<TreeRef> around;
            if (!parent.is_none()) around = LoopNamed(t, parent);
            return OrRaiseSchedule(looptree::AddLoop(t, around, DimNamed(t, var)));
          },
          "var"_a, "parent"_a = nb::none(), "A loop of size 1 over a dimension.")
      .def(
          "remove_loop",
          [](const LoopTree& t, nb::handle loop) {
            return OrRaiseSchedule(looptree::RemoveLoop(t, LoopNamed(t, loop)));
          },
          "loop"_a, "A loop of size 1.")
      .def(
          "remove_loop",
          [](const LoopTree& t, nb::handle node, nb::handle loop) {
            return OrRaiseSchedule(
                looptree::RemoveLoop(t, LoopNamed(t, loop), OperationNamed(t, node)));
          },
          "node"_a, "loop"_a,
          "The same for one operation; unchanged if it does not run over the loop's dimension.")
      .def(
          "decrease_reuse",
          [](const LoopTree& t, nb::handle ref) { return ChangeReuse(t, ref, false); }, "ref"_a,
          "Of a loop: no two operations in it share it. Of an operation: its innermost shared "
          "loop; unchanged if it has none.")
      .def(
          "increase_reuse",
          [](const LoopTree& t, nb::handle ref) { return ChangeReuse(t, ref, true); }, "ref"_a)
      .def(
          "disable_reuse",
          [](const LoopTree& t, nb::handle loop, nb::handle node) {
            return OrRaiseSchedule(
                looptree::DisableReuse(t, LoopNamed(t, loop), ProgramNode(t, node)));
          },
          "loop"_a, "node"_a,
          "The operation does not share the loop with what follows. `node`: 5 or \"%5\" for %5.")
      .def(
          "enable_reuse",
          [](const LoopTree& t, nb::handle loop, nb::handle node) {
            return OrRaiseSchedule(
                looptree::EnableReuse(t, LoopNamed(t, loop), ProgramNode(t, node)));
          },
          "loop"_a, "node"_a)
      .def(
          "compute_at",
          [](const LoopTree& t, nb::handle node, nb::handle loop) {
            return OrRaiseSchedule(
                looptree::ComputeAt(t, OperationNamed(t, node), LoopNamed(t, loop)));
          },
          "node"_a, "loop"_a, "Computes the operation inside a loop around all that reads it.")
      .def(
          "copy_input",
          [](const LoopTree& t, nb::handle node, std::size_t input) {
            return OrRaiseSchedule(looptree::CopyInput(t, OperationNamed(t, node), input));
          },
          "node"_a, "input"_a)
      .def(
          "delete_copy",
          [](const LoopTree& t, nb::handle node) {
            return OrRaiseSchedule(looptree::DeleteCopy(t, OperationNamed(t, node)));
          },
          "node"_a)
      .def(
          "swap_nodes",
          [](const LoopTree& t, nb::handle one, nb::handle other) {
            return OrRaiseSchedule(
                looptree::SwapNodes(t, OperationNamed(t, one), OperationNamed(t, other)));
          },
          "one"_a, "other"_a, "Exchanges two operations in the order in which they run.")
      .def(
          "swap_vars",
          [](const LoopTree& t, nb::handle node, nb::handle one, nb::handle other) {
            return OrRaiseSchedule(
                looptree::SwapVars(t, ProgramNode(t, node), DimNamed(t, one), DimNamed(t, other)));
          },
          "node"_a, "one"_a, "other"_a,
          "Exchanges two dimensions in the memory of a result. `node`: 5 or \"%5\" for %5; "
          "dimensions by number or name. Of a write it transposes the output.")
      .def(
          "rfactor",
          [](const LoopTree& t, nb::handle node, nb::handle loop) {
            return OrRaiseSchedule(
                looptree::Rfactor(t, OperationNamed(t, node), LoopNamed(t, loop)));
          },
          "node"_a, "loop"_a, "Reduces in two steps, the first for each iteration of the loop.");
}

// ---- IR -----------------------------------------------------------------------------------------

// A name, a number, or an enumeration's value with one of the two.
Op OpNamed(nb::handle op) {
  if (nb::hasattr(op, "name")) op = nb::getattr(op, "name");
  if (nb::isinstance<nb::int_>(op)) {
    if (const auto known = looptree::OpOf(nb::cast<std::int64_t>(op))) return *known;
    RaiseSchedule(fmt::format("there is no operation {}", nb::cast<std::int64_t>(op)));
  }
  auto name = nb::cast<std::string>(op);
  static constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"mul", "multiply"},
      {"sub", "subtract"},
      {"div", "divide"},
      {"neg", "negate"},
      {"recip", "reciprocal"}};
  for (const auto& [abbreviated, full] : kShort) {
    if (name == abbreviated) name = full;
  }
  std::vector<std::string_view> names;
  for (std::int64_t number = 0; number < 64; ++number) {
    const auto known = looptree::OpOf(number);
    if (!known) continue;
    if (looptree::OpName(*known) == name) return *known;
    names.push_back(looptree::OpName(*known));
  }
  RaiseSchedule(fmt::format("there is no operation '{}'{}", name, NearestSuffix(name, names)));
}

using Terms = std::vector<std::pair<DimId, std::int64_t>>;
using Index = std::tuple<DimId, Terms, std::int64_t, std::int64_t>;

NodeId CreateView(IrBuilder& ir, NodeId input, std::vector<DimId> vars,
                  const std::vector<Index>& index, std::optional<double> outside) {
  looptree::Node node{.op = Op::kView, .inputs = {input}, .dims = std::move(vars)};
  for (const auto& [input_dim, terms, constant, divisor] : index) {
    looptree::ViewIndex map{.input_dim = input_dim,
                            .terms = {},
                            .constant = constant,
                            .divisor = divisor,
                            .guarded = outside.has_value()};
    for (const auto& [dim, coefficient] : terms) map.terms.push_back({dim, coefficient});
    node.view.push_back(std::move(map));
  }
  node.outside = outside.value_or(0);
  return ir.CreateNode(std::move(node));
}

std::vector<std::pair<DimId, IrBuilder::Size>> OrderOf(const IrBuilder& ir, NodeId node) {
  (void)ir.node(node);
  std::vector<std::pair<DimId, IrBuilder::Size>> order;
  for (const looptree::LoopSpec& loop : ir.schedule()[node].loops) {
    order.emplace_back(loop.dim, IrBuilder::Size{loop.size, loop.tail});
  }
  return order;
}

template <class Container>
std::vector<std::uint32_t> Numbers(const Container& container) {
  std::vector<std::uint32_t> numbers(container.size());
  for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  return numbers;
}

// Those that it reduces over, too.
std::vector<DimId> LoopVars(const IrBuilder& ir, NodeId id) {
  std::vector<DimId> vars = ir.node(id).dims;
  if (ir.node(id).op == Op::kView) return vars;
  for (const NodeId input : ir.node(id).inputs) {
    for (const DimId dim : ir.node(input).dims) {
      if (std::ranges::find(vars, dim) == vars.end()) vars.push_back(dim);
    }
  }
  std::ranges::sort(vars);
  return vars;
}

std::vector<NodeId> ReadersOf(const IrBuilder& ir, NodeId id) {
  (void)ir.node(id);
  std::vector<NodeId> readers;
  for (NodeId reader = 0; reader < ir.program().nodes.size(); ++reader) {
    const auto& inputs = ir.program().nodes[reader].inputs;
    if (std::ranges::find(inputs, id) != inputs.end()) readers.push_back(reader);
  }
  return readers;
}

void BindIr(nb::module_& module) {
  nb::class_<IrBuilder>(
      module, "IR",
      "A program and its loops, made node by node, in loop_tool's words. Checked by LoopTree(ir).")
      .def(nb::init<>())
      .def_static(
          "parse",
          [](const std::string& text) {
            return IrBuilder(OrRaiseSchedule(looptree::ParseIr(text, {}, looptree::Words::kKept)));
          },
          "text"_a, "The IR of what serialize() gave.")
      .def("create_var", &IrBuilder::CreateVar, "name"_a, "size"_a = 0,
           "A dimension. Without a size it has that of the loops over it.")
      .def(
          "create_node",
          [](IrBuilder& ir, nb::handle op, std::vector<NodeId> inputs, std::vector<DimId> vars,
             const nb::iterable& constraints, const nb::dict& symbols) {
            const Op known = OpNamed(op);
            if (known == Op::kView && inputs.size() == 1) {
              return CreateViewOf(ir, inputs[0], std::move(vars), constraints, symbols);
            }
            if (nb::len(nb::tuple(constraints)) > 0) {
              RaiseSchedule(fmt::format("only a view of one node has constraints, no {}",
                                        looptree::OpName(known)));
            }
            return ir.CreateNode(
                {.op = known, .inputs = std::move(inputs), .dims = std::move(vars)});
          },
          "op"_a, "inputs"_a, "vars"_a, "constraints"_a = nb::tuple(), "sym_var_map"_a = nb::dict(),
          "`constraints`, of a view: pairs of equal expressions, as for Tensor.to; what lies "
          "outside of the input reads 0. `sym_var_map`: which var each of their symbols stands "
          "for, by the Symbol or its hash.")
      .def(
          "create_constant",
          [](IrBuilder& ir, double value, std::vector<DimId> vars) {
            return ir.CreateNode({.op = Op::kConstant, .dims = std::move(vars), .constant = value});
          },
          "value"_a, "vars"_a = std::vector<DimId>{})
      .def("create_view", &CreateView, "input"_a, "vars"_a, "index"_a, "outside"_a = nb::none(),
           "`index`: (var of the input, [(var, coefficient)], constant, divisor) for each of its "
           "vars. With `outside` they may leave the input and divide.")
      .def("set_inputs", &IrBuilder::SetInputs, "nodes"_a)
      .def("set_outputs", &IrBuilder::SetOutputs, "nodes"_a)
      .def("set_priority", &IrBuilder::SetPriority, "node"_a, "priority"_a)
      .def("set_order", &IrBuilder::SetOrder, "node"_a, "order"_a,
           "[(var, (size, tail))], outermost first.")
      .def(
          "disable_reuse",
          [](IrBuilder& ir, NodeId node, std::size_t loop) { ir.SetReuse(node, loop, false); },
          "node"_a, "loop"_a, "`loop`: a place in the node's order.")
      .def(
          "enable_reuse",
          [](IrBuilder& ir, NodeId node, std::size_t loop) { ir.SetReuse(node, loop, true); },
          "node"_a, "loop"_a)
      .def(
          "annotate",
          [](IrBuilder& ir, NodeId node, std::size_t loop, const std::string& word) {
            ir.Annotate(node, loop, AnnotationNamed(word));
          },
          "node"_a, "loop"_a, "word"_a)
      .def_prop_ro("vars", [](const IrBuilder& ir) { return Numbers(ir.program().dims); })
      .def_prop_ro("nodes", [](const IrBuilder& ir) { return Numbers(ir.program().nodes); })
      .def("inputs", [](const IrBuilder& ir) { return ir.program().inputs; })
      .def(
          "inputs", [](const IrBuilder& ir, NodeId node) { return ir.node(node).inputs; }, "node"_a)
      .def("outputs", [](const IrBuilder& ir) { return ir.program().outputs; })
      .def("outputs", &ReadersOf, "node"_a, "The nodes that read it.")
      .def(
          "order", [](const IrBuilder& ir, NodeId node) { return OrderOf(ir, node); }, "node"_a)
      .def_prop_ro("orders",
                   [](const IrBuilder& ir) {
                     nb::dict orders;
                     for (NodeId node = 0; node < ir.program().nodes.size(); ++node) {
                       const auto order = OrderOf(ir, node);
                       if (!order.empty()) orders[nb::int_(node)] = nb::cast(order);
                     }
                     return orders;
                   })
      .def_prop_ro("priorities",
                   [](const IrBuilder& ir) {
                     nb::dict priorities;
                     for (NodeId node = 0; node < ir.program().nodes.size(); ++node) {
                       priorities[nb::int_(node)] = ir.schedule()[node].priority;
                     }
                     return priorities;
                   })
      .def(
          "op",
          [](const IrBuilder& ir, NodeId node) {
            return std::string(looptree::OpName(ir.node(node).op));
          },
          "node"_a)
      .def(
          "output_vars", [](const IrBuilder& ir, NodeId node) { return ir.node(node).dims; },
          "node"_a)
      .def(
          "pointwise_vars", [](const IrBuilder& ir, NodeId node) { return ir.node(node).dims; },
          "node"_a)
      .def("loop_vars", &LoopVars, "node"_a)
      .def("all_vars", &LoopVars, "node"_a)
      .def(
          "dump",
          [](const IrBuilder& ir, NodeId node) {
            (void)ir.node(node);
            return looptree::OperationText(ir.program(), node);
          },
          "node"_a)
      .def(
          "dump_var", [](const IrBuilder& ir, DimId var) { return ir.var(var).name; }, "var"_a)
      .def(
          "serialize",
          [](const IrBuilder& ir) {
            return looptree::IrTextOf(OrRaiseSchedule(ir.Tree()), looptree::Words::kKept);
          },
          "The IR text, annotations without an effect too. ScheduleError if it is not finished.")
      .def(
          "__str__",
          [](const IrBuilder& ir) { return looptree::ScheduleDot(OrRaiseSchedule(ir.Tree())); },
          "Graphviz: a record for each operation, its dims above its loops.")
      .def("__repr__", [](const IrBuilder& ir) {
        return fmt::format("<IR of {} nodes and {} vars>", ir.program().nodes.size(),
                           ir.program().dims.size());
      });
}

void BindLoop(nb::module_& module) {
  nb::class_<LoopView>(module, "Loop",
                       "One loop of a tree. Equal to another if both are the same part of a "
                       "dimension, wherever they stand.")
      .def_ro("ref", &LoopView::ref, "Its number: 3 for L3.")
      .def_ro("var", &LoopView::var, "The number of its dimension.")
      .def_ro("name", &LoopView::name)
      .def_ro("label", &LoopView::label, "The name with a prime for each loop over it around.")
      .def_ro("depth", &LoopView::depth)
      .def_ro("size", &LoopView::size)
      .def_ro("tail", &LoopView::tail)
      .def_ro("annotation", &LoopView::annotation)
      .def("__eq__",
           [](const LoopView& loop, nb::handle other) {
             return nb::isinstance<LoopView>(other) &&
                    loop.SameLoop(nb::cast<const LoopView&>(other));
           })
      .def("__hash__",
           [](const LoopView& loop) {
             return nb::hash(nb::make_tuple(loop.label.c_str(), loop.size, loop.tail));
           })
      .def("__repr__", [](const LoopView& loop) {
        return fmt::format("<Loop L{}: {} in {}{}>", loop.ref, loop.label, loop.size,
                           loop.tail > 0 ? fmt::format(" r {}", loop.tail) : "");
      });
}

}  // namespace

void BindTrees(nb::module_& module) {
  BindScheduleError(module);
  BindLoop(module);
  BindIr(module);
  nb::class_<LoopTree> tree(
      module, "LoopTree",
      "A program with its loops, from a benchmark's URI, IR text or an IR. Never changes: each "
      "transformation gives a new tree, or raises ScheduleError.\n"
      "Loops are named by number (3 or \"L3\"), by label (\"m'\") or by a Loop; operations by the "
      "number of their line or as \"%5\".");
  tree.def(
          "__init__",
          [](LoopTree* place, const std::string& source) { new (place) LoopTree(Opened(source)); },
          "source"_a)
      .def(
          "__init__",
          [](LoopTree* place, const IrBuilder& ir) {
            new (place) LoopTree(OrRaiseSchedule(ir.Tree()));
          },
          "ir"_a);
  BindReading(tree);
  BindTransformations(tree);
}

}  // namespace loopfleet::python
