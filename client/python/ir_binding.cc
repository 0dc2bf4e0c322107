#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "client/python/bindings.h"
#include "client/python/ir_builder.h"
#include "client/python/loop_names.h"
#include "client/python/schedule_error.h"
#include "client/python/view_equations.h"
#include "common/base/suggestion.h"
#include "common/looptree/features/graph.h"
#include "common/looptree/program/program_facts.h"
#include "common/looptree/text/text.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using looptree::DimId;
using looptree::NodeId;
using looptree::Op;

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

}  // namespace

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

}  // namespace loopfleet::python
