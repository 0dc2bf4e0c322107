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

#include "client/python/bindings.h"
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
    if (tree.IsLoop(ref) == loops) refs.push_back(ref);
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
  if (!other.IsLoop(ref)) {
    const bool exists = there.node < tree.program().nodes.size();
    if (const auto leaf = exists ? tree.LeafOf(there.node) : std::nullopt) return *leaf;
    RaiseSchedule(fmt::format("%{} of the other tree has no line in this one", there.node));
  }
  std::optional<std::tuple<bool, std::int64_t, std::int64_t, TreeRef>> nearest;
  for (TreeRef at = 0; at < tree.nodes().size(); ++at) {
    if (!tree.IsLoop(at)) continue;
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
    if (tree.IsLoop(ref)) continue;
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
  if (tree.IsLoop(ref)) {
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
  return looptree::ActionNames(*actions);
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
          "is_loop", [](const LoopTree& t, nb::handle ref) { return t.IsLoop(NodeNamed(t, ref)); },
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
      .def("__getstate__", [](const LoopTree& t) { return looptree::IrTextOf(t); })
      .def("__setstate__",
           [](LoopTree& t, const std::string& ir) { new (&t) LoopTree(Opened(ir)); })
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
