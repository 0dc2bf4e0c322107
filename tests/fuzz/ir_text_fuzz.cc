// Bytes as a program in IR text: a typed rejection, or a tree that all other code can handle.

#include <cmath>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/features/features.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "tests/fuzz/fuzz_target.h"

namespace loopfleet::looptree {
namespace {

// Small enough to be interpreted: a few thousand points in all.
bool IsSmall(const LoopTree& tree) {
  constexpr std::int64_t kMostPoints = 2048;
  std::int64_t points = 0;
  for (NodeId id = 0; id < tree.program().nodes.size(); ++id) {
    std::int64_t own = tree.program().ElementCount(id);
    for (const DimId dim : tree.program().ReducedDims(id)) own *= tree.program().dims[dim].size;
    points += own;
    if (points > kMostPoints || tree.ScratchBytes() > 1 << 20) return false;
  }
  return true;
}

// Interpret checks that no element is read before it is written or outside its buffer; the result
// must match the reference.
void CheckMeaning(const LoopTree& tree) {
  std::vector<Tensor> inputs;
  for (const NodeId id : tree.program().inputs) {
    Tensor& input = inputs.emplace_back(static_cast<std::size_t>(tree.program().ElementCount(id)));
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 5) + 1.0F;
  }
  const auto outputs = Interpret(tree, inputs);
  const Reference reference = Evaluate(tree.program(), inputs);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    for (std::size_t i = 0; i < outputs[o].size(); ++i) {
      const double tolerance = reference.tolerance[o].empty() ? 0 : reference.tolerance[o][i];
      const double expected = reference.outputs[o][i];
      if (!std::isfinite(expected) || !std::isfinite(tolerance)) continue;  // nothing is promised
      LF_CHECK(std::abs(outputs[o][i] - expected) <= tolerance, "output {} element {}: {} for {}",
               o, i, outputs[o][i], expected);
    }
  }
}

void CheckTree(const LoopTree& tree) {
  const std::string text = IrTextOf(tree);
  const auto again = ParseIr(text);
  LF_CHECK(again.has_value(), "its own text is refused: {}", again.error().message);
  LF_CHECK(IrTextOf(*again) == text, "the text changed");
  LF_CHECK(KeyOf(*again) == KeyOf(tree), "the key changed");
  LF_CHECK(!TreeText(tree, {}).empty(), "no tree");
  for (const auto layout : {FeatureLayout::kAgent20, FeatureLayout::kAgent58}) {
    for (const auto& row : LoopsTensor(tree, 0, layout)) {
      LF_CHECK(row.size() == RowWidth(layout), "a row of {}", row.size());
    }
    LF_CHECK(StrideHistogram(tree, layout).size() == BucketCount(layout), "histogram");
  }
  if (IsSmall(tree)) CheckMeaning(tree);
}

// The input's own bytes choose the walk, so that a fuzzer can steer it.
void CheckWalk(const LoopTree& start, std::string_view bytes, RuleSet rules) {
  const Action actions[] = {Up{},       Down{},      Down{},           SwapUp{},
                            SwapDown{}, Split{2},    Split{3},         Split{16},
                            Merge{},    Unroll{},    Undo{},           Dummy{},
                            Down{},     Vectorize{}, Split{INT64_MAX}, MergeAllLoops{}};
  AgentWalk walk(Benchmark{.start = start}, rules);
  for (const char byte : bytes) {
    const Action& action = actions[static_cast<unsigned char>(byte) % std::size(actions)];
    const bool legal = walk.IsLegal(action);
    LF_CHECK(walk.Apply(action).has_value() == legal, "{}", ActionName(action));
    LF_CHECK(walk.cursor() < walk.tree().nodes().size(), "{}", ActionName(action));
  }
  CheckTree(walk.tree());
}

}  // namespace
}  // namespace loopfleet::looptree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace lt = loopfleet::looptree;
  constexpr std::size_t kWalkBytes = 24;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto tree = lt::ParseIr(bytes);
  if (!tree) {
    LF_CHECK(!tree.error().message.empty() && tree.error().message.size() < 1000, "its message");
    return 0;
  }
  lt::CheckTree(*tree);
  // Names and empty last lines may hold any bytes, so the end of the text can encode any walk.
  const std::string_view walk = bytes.substr(size > kWalkBytes ? size - kWalkBytes : 0);
  for (const auto rules : {lt::RuleSet::kStructural, lt::RuleSet::kLoopNest}) {
    lt::CheckWalk(*tree, walk, rules);
  }
  return 0;
}
