#include "client/python/loop_names.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "client/python/schedule_error.h"
#include "common/base/suggestion.h"
#include "common/looptree/program/number_text.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/annotation_text.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using looptree::kNoParent;
using looptree::LoopTree;
using looptree::NodeId;
using looptree::TreeNode;
using looptree::TreeRef;

std::string LabelOf(const LoopTree& tree, TreeRef ref) {
  const TreeNode& node = tree.nodes()[ref];
  return tree.program().dims[node.dim].name + std::string(node.dim_depth, '\'');
}

std::vector<TreeRef> LoopsOf(const LoopTree& tree) {
  std::vector<TreeRef> loops;
  for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    if (tree.IsLoop(ref)) loops.push_back(ref);
  }
  return loops;
}

std::string RefsText(const std::vector<TreeRef>& refs) {
  std::vector<std::string> names;
  for (const TreeRef ref : refs) names.push_back(fmt::format("L{}", ref));
  return fmt::format("{}", fmt::join(names, ", "));
}

[[noreturn]] void NoSuchLoop(const LoopTree& tree, const std::string& name) {
  std::vector<std::string> labels;
  for (const TreeRef ref : LoopsOf(tree)) labels.push_back(LabelOf(tree, ref));
  const std::vector<std::string_view> views(labels.begin(), labels.end());
  RaiseSchedule(fmt::format("there is no loop '{}'{}", name, NearestSuffix(name, views)));
}

// The number of "L3" or 3; nullopt: something else.
std::optional<std::int64_t> NumberOf(nb::handle name) {
  if (nb::isinstance<nb::int_>(name)) return nb::cast<std::int64_t>(name);
  if (!nb::isinstance<nb::str>(name)) return std::nullopt;
  const auto text = nb::cast<std::string>(name);
  if (!text.starts_with('L')) return std::nullopt;
  return looptree::ParseInteger(std::string_view(text).substr(1));
}

TreeRef CheckedRef(const LoopTree& tree, std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(tree.nodes().size())) {
    RaiseSchedule(
        fmt::format("there is no L{}: the tree has L0 to L{}", number, tree.nodes().size() - 1));
  }
  return static_cast<TreeRef>(number);
}

// The loops that a name may mean, at least one.
std::vector<TreeRef> Meant(const LoopTree& tree, nb::handle name) {
  if (const auto number = NumberOf(name)) {
    const TreeRef ref = CheckedRef(tree, *number);
    if (!tree.IsLoop(ref)) {
      RaiseSchedule(fmt::format("L{} is no loop but {}", ref,
                                looptree::OperationText(tree.program(), tree.nodes()[ref].node)));
    }
    return {ref};
  }
  std::vector<TreeRef> meant;
  if (nb::isinstance<LoopView>(name)) {
    const auto& sought = nb::cast<const LoopView&>(name);
    for (const TreeRef ref : LoopsOf(tree)) {
      if (LoopAt(tree, ref).SameLoop(sought)) meant.push_back(ref);
    }
    if (std::ranges::find(meant, sought.ref) != meant.end()) return {sought.ref};
    if (meant.empty()) NoSuchLoop(tree, sought.label);
    return meant;
  }
  if (!nb::isinstance<nb::str>(name)) {
    throw nb::type_error("a loop is named by its number, its label or a Loop");
  }
  const auto label = nb::cast<std::string>(name);
  for (const TreeRef ref : LoopsOf(tree)) {
    if (LabelOf(tree, ref) == label) meant.push_back(ref);
  }
  if (meant.empty()) NoSuchLoop(tree, label);
  return meant;
}

bool InOneNest(const LoopTree& tree, TreeRef one, TreeRef other) {
  const TreeRef outer = std::min(one, other);
  return std::max(one, other) < tree.nodes()[outer].end;
}

}  // namespace

LoopView LoopAt(const LoopTree& tree, TreeRef ref) {
  const TreeNode& node = tree.nodes()[ref];
  return {.ref = ref,
          .var = node.dim,
          .name = tree.program().dims[node.dim].name,
          .label = LabelOf(tree, ref),
          .depth = node.depth,
          .size = node.size,
          .tail = node.tail,
          .annotation = std::string(looptree::AnnotationText(node.annotation))};
}

bool NamesOperation(const LoopTree& tree, nb::handle name) {
  if (const auto number = NumberOf(name)) return !tree.IsLoop(CheckedRef(tree, *number));
  return nb::isinstance<nb::str>(name) && nb::cast<std::string>(name).starts_with('%');
}

TreeRef LoopNamed(const LoopTree& tree, nb::handle name) {
  const std::vector<TreeRef> meant = Meant(tree, name);
  if (meant.size() > 1) {
    RaiseSchedule(fmt::format("'{}' is {}: name one of them by its number",
                              LabelOf(tree, meant.front()), RefsText(meant)));
  }
  return meant.front();
}

std::vector<TreeRef> LoopsNamed(const LoopTree& tree, const std::vector<nb::object>& names) {
  std::vector<std::vector<TreeRef>> meant;
  for (const nb::object& name : names) meant.push_back(Meant(tree, name));
  std::vector<TreeRef> chosen;
  const std::function<bool()> choose = [&] {
    if (chosen.size() == meant.size()) return true;
    for (const TreeRef ref : meant[chosen.size()]) {
      const bool fits = std::ranges::all_of(
          chosen, [&](TreeRef other) { return ref != other && InOneNest(tree, ref, other); });
      if (!fits) continue;
      chosen.push_back(ref);
      if (choose()) return true;
      chosen.pop_back();
    }
    return false;
  };
  if (choose()) return chosen;
  // In no nest together: what is done with the first of each says which two.
  for (const std::vector<TreeRef>& refs : meant) chosen.push_back(refs.front());
  return chosen;
}

TreeRef NodeNamed(const LoopTree& tree, nb::handle name) {
  if (const auto number = NumberOf(name)) return CheckedRef(tree, *number);
  if (nb::isinstance<nb::str>(name) && nb::cast<std::string>(name).starts_with('%')) {
    const NodeId node = OperationNamed(tree, name);
    const auto leaf = tree.LeafOf(node);
    if (!leaf) RaiseSchedule(fmt::format("%{} has no line in the tree", node));
    return *leaf;
  }
  return LoopNamed(tree, name);
}

NodeId OperationNamed(const LoopTree& tree, nb::handle name) {
  if (nb::isinstance<nb::str>(name)) {
    const auto text = nb::cast<std::string>(name);
    if (text.starts_with('%')) {
      const auto number = looptree::ParseInteger(std::string_view(text).substr(1));
      if (number && *number >= 0 &&
          *number < static_cast<std::int64_t>(tree.program().nodes.size())) {
        return static_cast<NodeId>(*number);
      }
      RaiseSchedule(fmt::format("there is no operation '{}': the program has %0 to %{}", text,
                                tree.program().nodes.size() - 1));
    }
  }
  const auto number = NumberOf(name);
  if (!number) throw nb::type_error("an operation is named by its line's number or as '%5'");
  const TreeRef ref = CheckedRef(tree, *number);
  if (tree.IsLoop(ref)) {
    RaiseSchedule(fmt::format("L{} is a loop over {}, no operation", ref, LabelOf(tree, ref)));
  }
  return tree.nodes()[ref].node;
}

looptree::Annotation AnnotationNamed(const std::string& word) {
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

}  // namespace loopfleet::python
