// Random scripts of transformations do not change what a tree computes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/looptree/actions/walk.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "common/looptree/tree/program_transform.h"
#include "common/looptree/tree/transform.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

std::vector<TreeRef> LoopsOf(const LoopTree& tree) {
  std::vector<TreeRef> loops;
  for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    if (tree.nodes()[ref].kind == TreeNode::Kind::kLoop) loops.push_back(ref);
  }
  return loops;
}

constexpr std::uint64_t kTransformations = 18;

// Some of the loops around a loop, and itself, in any order.
std::vector<TreeRef> SomeOfOneNest(const LoopTree& tree, TreeRef loop, SplitMix64& random) {
  std::vector<TreeRef> some;
  for (TreeRef up = loop; up != kNoParent; up = tree.nodes()[up].parent) {
    if (random.Below(3) > 0) some.push_back(up);
  }
  for (std::size_t i = some.size(); i > 1; --i) std::swap(some[i - 1], some[random.Below(i)]);
  return some;
}

template <class Is>
std::optional<NodeId> PickNode(const LoopTree& tree, SplitMix64& random, Is is) {
  std::vector<NodeId> fitting;
  for (NodeId id = 0; id < tree.program().nodes.size(); ++id) {
    if (is(id)) fitting.push_back(id);
  }
  if (fitting.empty()) return std::nullopt;
  return fitting[random.Below(fitting.size())];
}

Checked<LoopTree> RandomTransformation(const LoopTree& tree, std::uint64_t which,
                                       SplitMix64& random) {
  const auto loops = LoopsOf(tree);
  const auto pick = [&] { return loops[random.Below(loops.size())]; };
  const TreeRef loop = pick();
  const auto any_node = [&] {
    return static_cast<NodeId>(random.Below(tree.program().nodes.size()));
  };
  const NodeId node = any_node();
  switch (which) {
    case 0: return Swap(tree, loop, pick());
    case 1: return SplitLoop(tree, loop, 1 + static_cast<std::int64_t>(random.Below(5)));
    case 2: {
      auto merged = MergeLoop(tree, loop);
      if (!merged) return std::unexpected(merged.error());
      return merged->value_or(tree);
    }
    case 3: return MergeAll(tree);
    case 4: return Annotate(tree, loop, static_cast<Annotation>(random.Below(4)));
    case 5: {
      const auto dim = static_cast<DimId>(random.Below(tree.program().dims.size()));
      if (random.Below(3) == 0) return AddLoop(tree, std::nullopt, dim);
      return AddLoop(tree, loop, dim);
    }
    case 6: return RemoveLoop(tree, loop);
    case 7: return DecreaseReuse(tree, loop);
    case 8: return IncreaseReuse(tree, loop);
    case 9: return Reorder(tree, SomeOfOneNest(tree, loop, random));
    case 10: return DisableReuse(tree, loop, node);
    case 11: return EnableReuse(tree, loop, node);
    case 12: return ComputeAt(tree, node, loop);
    case 13: return CopyInput(tree, node, random.Below(2));
    case 14: {
      const auto copy = PickNode(
          tree, random, [&](NodeId id) { return tree.program().nodes[id].op == Op::kCopy; });
      return DeleteCopy(tree, copy.value_or(node));
    }
    case 15: return SwapNodes(tree, node, any_node());
    case 16: {
      const auto inner = PickNode(tree, random, [&](NodeId id) {
        const Node& candidate = tree.program().nodes[id];
        return candidate.op != Op::kWrite && candidate.dims.size() > 1;
      });
      if (!inner) return SwapVars(tree, node, 0, 0);
      const auto& dims = tree.program().nodes[*inner].dims;
      return SwapVars(tree, *inner, dims[random.Below(dims.size())],
                      dims[random.Below(dims.size())]);
    }
    default: {
      const auto sum = PickNode(tree, random, [&](NodeId id) {
        return tree.program().IsReduction(id) && !tree.LoopsOf(id).empty();
      });
      if (!sum) return Rfactor(tree, node, loop);
      const auto own = tree.LoopsOf(*sum);
      return Rfactor(tree, *sum, own[random.Below(own.size())]);
    }
  }
}

void ExpectMeansTheSame(const LoopTree& tree, const Program& program, SplitMix64& random) {
  const auto inputs = IntegerInputs(program, random);  // exact in float32
  const Reference reference = Evaluate(program, inputs);
  const auto outputs = Interpret(tree, inputs);
  ASSERT_EQ(outputs.size(), reference.outputs.size());
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    ASSERT_TRUE(reference.tolerance[o].empty());
    ASSERT_EQ(outputs[o].size(), reference.outputs[o].size());
    for (std::size_t i = 0; i < outputs[o].size(); ++i) {
      ASSERT_EQ(outputs[o][i], reference.outputs[o][i]) << "output " << o << " element " << i;
    }
  }
}

// Reductions of negative numbers, too, so that what fills blocks up must be the initial value.
TEST(TransformProperty, RfactorOfUnevenLoops) {
  SplitMix64 random(78);
  int guarded = 0, cut_in_blocks = 0;
  for (const Op op : {Op::kAdd, Op::kMax, Op::kMin}) {
    for (std::int64_t size = 2; size <= 24; ++size) {
      const Program program{.dims = {{"m", 2}, {"k", size}},
                            .nodes = {{.op = Op::kRead, .dims = {0, 1}},
                                      {.op = Op::kNegate, .inputs = {0}, .dims = {0, 1}},
                                      {.op = op, .inputs = {1}, .dims = {0}},
                                      {.op = op, .inputs = {0}, .dims = {0}},
                                      {.op = Op::kWrite, .inputs = {2}, .dims = {0}},
                                      {.op = Op::kWrite, .inputs = {3}, .dims = {0}}}};
      const LoopTree start = WholeLoops(program).start;
      for (std::int64_t outer = 2; outer < size; outer += 2) {
        const LoopTree split = *SplitLoop(start, start.LoopsOf(2)[1], outer);
        for (std::int64_t inner = 2; inner < outer; ++inner) {
          const LoopTree twice = *SplitLoop(split, split.LoopsOf(2)[2], inner);
          for (const TreeRef loop : twice.LoopsOf(2).subspan(1)) {
            SCOPED_TRACE(TreeText(twice, {}));
            const auto factored = Rfactor(twice, 2, loop);
            ASSERT_TRUE(factored.has_value()) << factored.error().message;
            ExpectMeansTheSame(*factored, start.program(), random);
            if (HasFailure()) return;
            const auto has = [&](const char* name) {
              return std::ranges::find(factored->program().dims, name, &Dim::name) !=
                     factored->program().dims.end();
            };
            guarded += std::ranges::any_of(factored->program().nodes, [](const Node& node) {
              return std::ranges::any_of(node.view, &ViewIndex::guarded);
            });
            cut_in_blocks += has("k_block");
          }
        }
      }
    }
  }
  EXPECT_GT(guarded, 500);
  EXPECT_GT(cut_in_blocks, 100);
}

// What lacks the reduced dimension is combined once for each of its elements, and no more often.
TEST(TransformProperty, RfactorOfUnevenLoopsThatRepeatAnOperand) {
  SplitMix64 random(79);
  for (const Op op : {Op::kAdd, Op::kMultiply, Op::kMin, Op::kMax}) {
    for (const Node& repeated : {Node{.op = Op::kRead, .dims = {0}}, Node{.op = Op::kRead},
                                 Node{.op = Op::kConstant, .constant = 2},
                                 Node{.op = Op::kNegate, .inputs = {0}, .dims = {0}}}) {
      const Program program{.dims = {{"m", 2}, {"k", 7}},
                            .nodes = {{.op = Op::kRead, .dims = {0}},
                                      {.op = Op::kRead, .dims = {0, 1}},
                                      repeated,
                                      {.op = op, .inputs = {1, 2}, .dims = {0}},
                                      {.op = Op::kWrite, .inputs = {3}, .dims = {0}},
                                      {.op = Op::kWrite, .inputs = {0}, .dims = {0}}}};
      const LoopTree start = WholeLoops(program).start;
      const auto inputs = IntegerInputs(start.program(), random);
      const auto expected = Interpret(start, inputs);
      for (std::int64_t outer = 2; outer < 7; ++outer) {
        const LoopTree once = *SplitLoop(start, start.LoopsOf(3)[1], outer);
        for (std::int64_t inner = 2; inner <= outer; ++inner) {
          const LoopTree tree = inner == outer ? once : *SplitLoop(once, once.LoopsOf(3)[2], inner);
          for (const TreeRef loop : tree.LoopsOf(3).subspan(1)) {
            SCOPED_TRACE(TreeText(tree, {}));
            const auto factored = Rfactor(tree, 3, loop);
            ASSERT_TRUE(factored.has_value()) << factored.error().message;
            ASSERT_EQ(Interpret(*factored, inputs), expected) << TreeText(*factored, {});
            const auto means = Evaluate(factored->program(), inputs).outputs[0];
            ASSERT_EQ(Tensor(means.begin(), means.end()), expected[0]);
            const auto parsed = ParseIr(IrTextOf(*factored));
            ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
            ASSERT_EQ(KeyOf(*parsed), KeyOf(*factored));
          }
        }
      }
    }
  }
}

TEST(TransformProperty, RandomScriptsComputeWhatTheProgramMeans) {
  constexpr int kScripts = 150;
  constexpr int kSteps = 16;
  SplitMix64 random(77);
  std::map<std::uint64_t, int> done;
  for (const auto& [name, benchmark] : AllKinds()) {
    SCOPED_TRACE(name);
    for (int script = 0; script < kScripts; ++script) {
      LoopTree tree = benchmark.start;
      bool factored = false;
      for (int step = 0; step < kSteps; ++step) {
        const std::uint64_t which = random.Below(kTransformations);
        const std::string before = IrTextOf(tree);
        auto changed = RandomTransformation(tree, which, random);
        ASSERT_EQ(IrTextOf(tree), before) << "a transformation is pure";
        if (!changed) {
          EXPECT_FALSE(changed.error().message.empty());
          continue;
        }
        ++done[which];
        tree = *std::move(changed);
        factored |= which == kTransformations - 1;
        if (!factored) {  // which combines partial results, too
          EXPECT_EQ(FlopCount(tree.program()), FlopCount(benchmark.start.program()));
        }
      }
      SCOPED_TRACE(TreeText(tree, {}));
      ExpectMeansTheSame(tree, benchmark.start.program(), random);
      const auto parsed = ParseIr(IrTextOf(tree));
      ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
      EXPECT_EQ(TreeText(*parsed, {}), TreeText(tree, {}));
      if (HasFailure()) return;
    }
  }
  for (std::uint64_t which = 0; which < kTransformations; ++which) {
    EXPECT_GT(done[which], 20) << "transformation " << which << " was hardly tried";
  }
}

}  // namespace
}  // namespace loopfleet::looptree
