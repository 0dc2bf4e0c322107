#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "client/python/bindings.h"
#include "common/llvm_passes/clang_flags.h"
#include "common/llvm_passes/debian_programs.h"
#include "common/llvm_passes/observation.h"
#include "common/llvm_passes/pass_action.h"
#include "common/llvm_passes/program_uri.h"
#include "common/llvm_passes/programl_graph.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

std::string_view TypeName(passes::ValueType type) {
  switch (type) {
    case passes::ValueType::kInteger: return "int64";
    case passes::ValueType::kIntegers: return "int64[]";
    case passes::ValueType::kFloats: return "float32[]";
    case passes::ValueType::kBytes: return "text";
  }
  return "";
}

nb::list Actions(const std::string& name) {
  const auto space = passes::ParseActionSpace(name);
  if (!space) throw nb::key_error(name.c_str());
  nb::list list;
  for (const passes::PassAction& action : passes::ActionsOf(*space)) {
    list.append(nb::make_tuple(action.flag, action.text));
  }
  return list;
}

std::vector<std::string_view> NamesIn(std::string_view observation) {
  const auto of = [](std::span<const std::string_view> names) {
    return std::vector<std::string_view>(names.begin(), names.end());
  };
  if (observation == "InstCount") return of(passes::InstCountNames());
  if (observation == "Autophase") return of(passes::AutophaseNames());
  return {};
}

std::vector<std::string_view> ProgramNames(const std::string& dataset) {
  std::vector<std::string_view> names;
  if (dataset == "small-v0") {
    const auto small = passes::SmallProgramNames();
    names.assign(small.begin(), small.end());
  } else if (dataset == "debian-v0") {
    for (const passes::DebianPin& pin : passes::DebianPins()) names.push_back(pin.name);
  } else {
    throw nb::key_error(dataset.c_str());
  }
  return names;
}

passes::ProgramlGraph Decoded(const nb::bytes& graph) {
  auto decoded = passes::DecodePrograml({graph.c_str(), graph.size()});
  if (!decoded) throw nb::value_error(decoded.error().message.c_str());
  return *std::move(decoded);
}

template <class T>
nb::bytes BytesOf(const std::vector<T>& column) {
  static_assert(std::endian::native == std::endian::little);
  return nb::bytes(column.data(), column.size() * sizeof(T));
}

nb::dict Columns(const nb::bytes& bytes) {
  const passes::ProgramlGraph graph = Decoded(bytes);
  nb::dict columns;
  columns["texts"] = graph.texts;
  columns["node_type"] = BytesOf(graph.node_type);
  columns["node_text"] = BytesOf(graph.node_text);
  columns["node_function"] = BytesOf(graph.node_function);
  columns["node_block"] = BytesOf(graph.node_block);
  columns["edge_flow"] = BytesOf(graph.edge_flow);
  columns["edge_position"] = BytesOf(graph.edge_position);
  columns["edge_source"] = BytesOf(graph.edge_source);
  columns["edge_target"] = BytesOf(graph.edge_target);
  return columns;
}

}  // namespace

void BindPasses(nb::module_& module) {
  module.def("pass_actions", &Actions, "space"_a,
             "(flag, canonical text) of each action of \"PassesAll\", \"Passes19\" or "
             "\"PassesPipelines\". KeyError: there is no such space.");
  module.def(
      "pass_observations",
      [] {
        nb::list list;
        for (const passes::ObservationInfo& info : passes::ObservationTable()) {
          const bool is_binary = passes::IsBinary(info.observation);
          list.append(nb::make_tuple(info.name, is_binary ? "bytes" : TypeName(info.type),
                                     info.baseline != passes::Baseline::kNone));
        }
        return list;
      },
      "(name, type, whether it is the same after any passes) of each observation.");
  module.def(
      "programl_json",
      [](const nb::bytes& graph) { return passes::ToNodeLinkJson(Decoded(graph)); }, "graph"_a,
      "NetworkX's node-link form of the observation Programl. ValueError: it is none.");
  module.def(
      "programl_columns", &Columns, "graph"_a,
      "The observation Programl as {column: bytes}, with the node texts as a list. Numbers are "
      "little-endian. ValueError: it is none.");
  module.def("pass_programs", &ProgramNames, "dataset"_a,
             "The programs of \"small-v0\" or \"debian-v0\". KeyError: there is no such dataset.");
  module.def(
      "clang_flags",
      [] {
        return std::vector<std::string_view>(passes::kClangFlags.begin(),
                                             passes::kClangFlags.end());
      },
      "The arguments of clang that make programs of C and C++.");
  module.def("pass_number_names", &NamesIn, "observation"_a,
             "What the numbers of InstCount or Autophase count, in order; else [].");
}

}  // namespace loopfleet::python
