#include "client/replay/observation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "client/replay/graph_json.h"
#include "common/base/enum_names.h"
#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/looptree/features/graph.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/annotation_text.h"
#include "common/looptree/tree/key.h"

namespace loopfleet::client {
namespace {

using looptree::Dialect;
using looptree::SimpleWalk;
using Value = std::expected<Json, Failure>;
using Dialects = Observation::Dialects;
using Shown = Observation::Shown;

Value LoopTreeText(const Scene& scene) {
  looptree::TreeTextOptions options{
      .dialect = scene.benchmark.dialect, .target = scene.benchmark.target, .cursor = {}};
  if (scene.agent != nullptr) options.cursor = scene.cursor;
  return looptree::TreeText(scene.tree, options);
}

Value LegalActions(const Scene& scene) {
  Json legal = Json::array();
  for (std::size_t i = 0; i < scene.space->names.size(); ++i) {
    if (scene.agent->IsLegal(scene.space->actions[i])) legal.push_back(scene.space->names[i]);
  }
  return legal;
}

Value LoopsTensor(const Scene& scene) {
  const ObservationOptions& options = scene.options;
  if (!options.max_loops) {
    return Json(looptree::LoopsTensor(scene.tree, scene.cursor, options.features));
  }
  auto padded =
      looptree::PaddedLoopsTensor(scene.tree, scene.cursor, options.features, *options.max_loops);
  if (!padded) return std::unexpected(ToFailure(padded.error()));
  return Json(*std::move(padded));
}

Value StrideTensor(const Scene& scene) {
  const std::size_t buckets =
      scene.options.stride_buckets.value_or(looptree::BucketCount(scene.options.features));
  return Json(looptree::StrideHistogram(scene.tree, buckets));
}

Value Orders(const Scene& scene) {
  Json orders = Json::array();
  for (const SimpleWalk::Order& order : scene.simple->orders()) {
    orders.push_back({order.size, order.tail});
  }
  return orders;
}

constexpr std::array kObservations = {
    Observation{"loop_tree", Dialects::kBoth, Shown::kByDefault, "text",
                "the loop tree; dialect agent marks the cursor's line", LoopTreeText},
    Observation{"action_state", Dialects::kSimple, Shown::kByDefault, "int64[3]",
                "index, size and tail of the selected loop",
                [](const Scene& scene) -> Value { return scene.simple->ActionState(); }},
    Observation{"mode", Dialects::kSimple, Shown::kByDefault, "text", "size or select",
                [](const Scene& scene) -> Value {
                  return scene.simple->mode() == SimpleWalk::Mode::kSize ? "size" : "select";
                }},
    Observation{"thread", Dialects::kSimple, Shown::kByDefault, "bool[3]",
                "which of the loops are threaded",
                [](const Scene& scene) -> Value { return scene.simple->thread(); }},
    Observation{"orders", Dialects::kSimple, Shown::kOnRequest, "int64[3][2]",
                "size and tail of each loop", Orders},
    Observation{"cursor", Dialects::kAgent, Shown::kByDefault, "int",
                "the tree node that the cursor is on, as in L3",
                [](const Scene& scene) -> Value { return scene.cursor; }},
    Observation{"legal_actions", Dialects::kAgent, Shown::kByDefault, "text[]",
                "what the rule set admits of the action space, in its order", LegalActions},
    Observation{"ir", Dialects::kBoth, Shown::kByDefault, "text",
                "program and loops as loop_tool's IR text",
                [](const Scene& scene) -> Value { return looptree::IrTextOf(scene.tree); }},
    Observation{
        "flop_count", Dialects::kBoth, Shown::kByDefault, "int",
        "floating-point operations of one run; the same for every tree of a program",
        [](const Scene& scene) -> Value { return looptree::FlopCount(scene.tree.program()); }},
    Observation{"loops_tensor", Dialects::kBoth, Shown::kByDefault, "float[loops][20|58]",
                "features of each loop of the first nest; flat and padded if max_loops is given",
                LoopsTensor},
    Observation{"stride_histogram", Dialects::kBoth, Shown::kByDefault, "float[16|32]",
                "how often loops step, by the power of two of the stride", StrideTensor},
    Observation{"stride_tensor", Dialects::kBoth, Shown::kOnRequest, "float[16|32]",
                "stride_histogram by its other name", StrideTensor},
    Observation{"5_prev_actions_tensor", Dialects::kAgent, Shown::kOnRequest, "float[5 * actions]",
                "the last five applied actions, newest first, one-hot over the action space",
                [](const Scene& scene) -> Value {
                  return Json(looptree::PreviousActionsTensor(scene.agent->history(),
                                                              scene.space->actions));
                }},
    Observation{"scratch_bytes", Dialects::kBoth, Shown::kOnRequest, "int",
                "bytes of all intermediate buffers",
                [](const Scene& scene) -> Value { return scene.tree.ScratchBytes(); }},
    Observation{"ir_tree_networkx", Dialects::kBoth, Shown::kOnRequest, "node-link object",
                "the loop tree as a graph",
                [](const Scene& scene) -> Value {
                  return GraphJson(looptree::TreeGraph(scene.tree, scene.cursor));
                }},
    Observation{"ir_graph_networkx", Dialects::kBoth, Shown::kOnRequest, "node-link object",
                "the loop tree with its buffers and accesses as a graph",
                [](const Scene& scene) -> Value {
                  return GraphJson(looptree::DataflowGraph(scene.tree, scene.cursor));
                }},
    Observation{
        "dot", Dialects::kBoth, Shown::kOnRequest, "text",
        "the program and each operation's loops as Graphviz",
        [](const Scene& scene) -> Value { return looptree::ProgramDot(scene.tree, scene.cursor); }},
    Observation{"dot_ir", Dialects::kBoth, Shown::kOnRequest, "text",
                "the same as dot, in a form that Graphviz draws",
                [](const Scene& scene) -> Value {
                  return looptree::ProgramDot(scene.tree, scene.cursor,
                                              looptree::DotForm::kDrawable);
                }},
    Observation{
        "dot_tree", Dialects::kBoth, Shown::kOnRequest, "text",
        "the loop tree's first nest as Graphviz",
        [](const Scene& scene) -> Value { return looptree::TreeDot(scene.tree, scene.cursor); }},
    Observation{"dot_graph", Dialects::kBoth, Shown::kOnRequest, "text",
                "the first nest with its buffers and accesses as Graphviz",
                [](const Scene& scene) -> Value {
                  return looptree::DataflowDot(scene.tree, scene.cursor);
                }},
    Observation{"tree_key", Dialects::kBoth, Shown::kByDefault, "text, 32 hexadecimal digits",
                "equal exactly for equal trees",
                [](const Scene& scene) -> Value { return looptree::KeyOf(scene.tree).ToString(); }},
};

// Of the observations of both dialects, dialect simple shows only these by default.
bool IsSimpleDefault(std::string_view name) { return name == "loop_tree" || name == "tree_key"; }

}  // namespace

bool Observation::In(Dialect dialect) const {
  return dialects == Dialects::kBoth ||
         (dialects == Dialects::kSimple) == (dialect == Dialect::kSimple);
}

bool Observation::IsDefault(Dialect dialect) const {
  if (!In(dialect) || shown != Shown::kByDefault) return false;
  return dialect == Dialect::kAgent || dialects == Dialects::kSimple || IsSimpleDefault(name);
}

std::span<const Observation> Observations() { return kObservations; }

std::expected<std::vector<const Observation*>, Failure> ChooseObservations(
    const std::optional<std::vector<std::string>>& names, Dialect dialect) {
  const auto malformed = [](std::string message) {
    return std::unexpected(Failure{.code = FailureCode::kMalformed, .message = std::move(message)});
  };
  std::vector<std::string_view> valid;
  for (const Observation& row : kObservations) {
    if (row.In(dialect)) valid.push_back(row.name);
  }
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    const auto* row = std::ranges::find(kObservations, name, &Observation::name);
    if (row == kObservations.end()) {
      return malformed(fmt::format("unknown observation \"{}\"{}; valid: {}", name.substr(0, 60),
                                   NearestSuffix(name, valid), fmt::join(valid, ", ")));
    }
    if (!row->In(dialect)) {
      const Dialect other = dialect == Dialect::kSimple ? Dialect::kAgent : Dialect::kSimple;
      return malformed(
          fmt::format("observation \"{}\" belongs to dialect {}; this benchmark's is {}; valid: {}",
                      name, EnumName(other), EnumName(dialect), fmt::join(valid, ", ")));
    }
  }
  std::vector<const Observation*> chosen;
  for (const Observation& row : kObservations) {
    const bool wanted =
        names ? std::ranges::find(*names, row.name) != names->end() : row.IsDefault(dialect);
    if (wanted) chosen.push_back(&row);
  }
  return chosen;
}

}  // namespace loopfleet::client
