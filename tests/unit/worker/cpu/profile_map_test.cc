// Kernels that are compiled to be profiled: a copy with probes gives the right result and counts
// right, and noting lines does not change the code. On every kind of program.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "common/base/random.h"
#include "common/looptree/actions/walk.h"
#include "tests/unit/worker/cpu/kernel_runner.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {
namespace {

using looptree::LoopTree;
using looptree::TreeNode;
using looptree::TreeRef;

constexpr CodePlace kPlace{.address = 0x10000, .max_bytes = std::size_t{8} << 20};

LoopTree TreeOf(std::string uri, std::string_view actions = "") {
  return looptree::Replay(looptree::BenchmarkUri{std::move(uri)},
                          looptree::ParseActionList(actions).value())
      .value()
      .tree;
}

std::set<TreeRef> AllLoops(const LoopTree& tree) {
  std::set<TreeRef> loops;
  for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    if (tree.nodes()[ref].kind == TreeNode::Kind::kLoop) loops.insert(ref);
  }
  return loops;
}

class ProfileMapTest : public ::testing::Test {
 protected:
  Kernel Compile(const LoopTree& tree, Instrumentation::Kind kind, std::set<TreeRef> loops = {},
                 std::uint32_t threads = 1) {
    auto kernel = runner_.TryCompile(
        tree, {.threads = threads, .instrumentation = {.kind = kind, .loops = std::move(loops)}});
    EXPECT_TRUE(kernel) << (kernel ? "" : kernel.error().message);
    return *std::move(kernel);
  }
  struct Cells {
    std::uint64_t ticks = 0;
    std::uint64_t entries = 0;
  };
  // What a copy counts in `runs` runs, by site.
  std::vector<Cells> Count(const Kernel& kernel, const LoopTree& tree, int runs) {
    const auto inputs = SmallIntegers(tree.program(), 1);
    constexpr std::size_t kAlignment = 64;
    std::vector<std::unique_ptr<void, decltype(&std::free)>> memory;
    std::vector<float*> pointers;
    for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
      const std::size_t bytes = kernel.buffers[i].element_count * sizeof(float);
      const std::size_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;
      memory.emplace_back(std::aligned_alloc(kAlignment, rounded), &std::free);
      pointers.push_back(static_cast<float*>(memory.back().get()));
      std::fill_n(pointers.back(), kernel.buffers[i].element_count, 0.0F);
      if (i < inputs.size()) std::ranges::copy(inputs[i], pointers.back());
    }
    const auto linked = Linker().Link(kernel.object).value();
    for (int i = 0; i < runs; ++i) linked->function()(pointers.data());
    const ProbeCells& probes = *kernel.profile.probes;
    std::vector<Cells> counts(probes.sites.size());
    std::memcpy(counts.data(), reinterpret_cast<const std::byte*>(pointers.back()) + probes.offset,
                counts.size() * sizeof counts[0]);
    return counts;
  }

  KernelRunner runner_{CpuIsa::kHost};
};

TEST_F(ProfileMapTest, NotingLinesChangesNoCode) {
  Linker linker;
  int trees = 0;
  for (const ZooProgram& program : ProgramZoo()) {
    SplitMix64 random(7);
    for (int i = 0; i < 4; ++i) {
      const LoopTree tree =
          i == 0 ? PlainTree(program.program) : RandomTree(program.program, random);
      for (const std::uint32_t threads : {1U, 4U}) {
        SCOPED_TRACE(program.name);
        const auto plain = runner_.TryCompile(tree, {.threads = threads});
        const auto noted = runner_.TryCompile(
            tree, {.threads = threads,
                   .instrumentation = {.kind = Instrumentation::Kind::kLines, .loops = {}}});
        ASSERT_TRUE(plain && noted) << noted.error().message;
        EXPECT_EQ(noted->object, plain->object);
        EXPECT_TRUE(plain->profile == ProfileMap{});
        const CodeImage image = linker.LinkAt(plain->object, kPlace).value();
        const auto& spans = noted->profile.spans;
        ASSERT_FALSE(spans.empty());
        EXPECT_TRUE(std::ranges::is_sorted(spans, {}, &CodeSpan::begin));
        for (const CodeSpan& span : spans) {
          EXPECT_LT(span.place.ref, tree.nodes().size());
          EXPECT_GE(span.begin + static_cast<std::int64_t>(image.entry), 0);
          EXPECT_LE(span.begin + static_cast<std::int64_t>(image.entry),
                    static_cast<std::int64_t>(image.bytes.size()));
        }
        ++trees;
      }
    }
  }
  EXPECT_GT(trees, 100);
}

TEST_F(ProfileMapTest, ACopyWithProbesIsRightAndUsesTheCellsOnly) {
  for (const ZooProgram& program : ProgramZoo()) {
    SplitMix64 random(9);
    for (const std::uint32_t threads : {1U, 4U}) {
      SCOPED_TRACE(program.name);
      const LoopTree tree = RandomTree(program.program, random);
      const Kernel plain = Compile(tree, Instrumentation::Kind::kNone, {}, threads);
      const Kernel copy = Compile(tree, Instrumentation::Kind::kCounters, AllLoops(tree), threads);
      ASSERT_TRUE(copy.profile.probes);
      EXPECT_GE(copy.profile.probes->offset, plain.scratch_bytes);
      EXPECT_EQ(copy.scratch_bytes,
                copy.profile.probes->offset + 16 * copy.profile.probes->sites.size());
      const auto inputs = SmallIntegers(tree.program(), 3);
      std::string problems;
      const auto right = runner_.Run(plain, inputs, problems);
      const auto counted = runner_.Run(copy, inputs, problems);
      EXPECT_EQ(problems, "");
      ASSERT_EQ(right.size(), counted.size());
      for (std::size_t i = 0; i < right.size(); ++i) {
        EXPECT_EQ(std::memcmp(right[i].data(), counted[i].data(), right[i].size() * sizeof(float)),
                  0);
      }
    }
  }
}

TEST_F(ProfileMapTest, EntriesAreCounted) {
  // m, n, k with the sum in a register block from k on: one site for each of m and n at most.
  const LoopTree tree = TreeOf("benchmark://mm-v0/mm33_48_64");
  const Kernel copy = Compile(tree, Instrumentation::Kind::kCounters, AllLoops(tree));
  const auto& sites = copy.profile.probes->sites;
  const auto counts = Count(copy, tree, 3);
  EXPECT_EQ(counts[0].entries, 3U);
  EXPECT_GT(counts[0].ticks, 0U);
  std::uint64_t of_roots = 0;
  for (std::size_t i = 1; i < sites.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(counts[i].entries, static_cast<std::uint64_t>(3 * sites[i].entries));
    EXPECT_LE(counts[i].ticks, counts[sites[i].parent].ticks);
    if (sites[i].is_root) of_roots += counts[i].ticks;
  }
  EXPECT_LE(of_roots, counts[0].ticks);
}

TEST_F(ProfileMapTest, WithoutLoopsOnlyRootsCount) {
  const LoopTree tree = TreeOf("benchmark://mm-v0/mm64_64_64");
  const Kernel copy = Compile(tree, Instrumentation::Kind::kCounters);
  const auto& sites = copy.profile.probes->sites;
  const auto counts = Count(copy, tree, 2);
  for (std::size_t i = 1; i < sites.size(); ++i) {
    EXPECT_EQ(counts[i].entries, sites[i].is_root ? 2U : 0U);
  }
}

TEST_F(ProfileMapTest, AProductThatOnlyASumUsesIsFusedWithIt) {
  const LoopTree tree = TreeOf("benchmark://mm-v0/mm64_64_64");
  const Kernel noted = Compile(tree, Instrumentation::Kind::kLines);
  ASSERT_EQ(noted.profile.fused.size(), 1U);
  const auto [product, sum] = noted.profile.fused[0];
  const auto op_of = [&](TreeRef ref) { return tree.program().nodes[tree.nodes()[ref].node].op; };
  EXPECT_EQ(op_of(product), looptree::Op::kMultiply);
  EXPECT_EQ(op_of(sum), looptree::Op::kAdd);
  std::set<ProfilePlace> places;
  for (const CodeSpan& span : noted.profile.spans) places.insert(span.place);
  EXPECT_TRUE(places.contains({.ref = sum}));
  EXPECT_TRUE(places.contains({.ref = sum, .part = ProfilePart::kCombine}));
  EXPECT_FALSE(places.contains({.ref = product}));
}

TEST_F(ProfileMapTest, PanelsAreARootOfTheirOwn) {
  // Rows 4 KiB apart, read again for each strip of m (docs/LOWERING.md, "Packed panels").
  const LoopTree tree = TreeOf("benchmark://mm-v0/mm64_1024_100",
                               "split_4,down,swap_down,down,split_32,swap_up,swap_up");
  const Kernel copy = Compile(tree, Instrumentation::Kind::kCounters);
  const auto packs = [](const ProbeSite& site) { return site.place.part == ProfilePart::kPack; };
  const bool is_packed = std::ranges::any_of(copy.profile.probes->sites, packs);
  const Kernel noted = Compile(tree, Instrumentation::Kind::kLines);
  const bool has_lines = std::ranges::any_of(noted.profile.spans, [](const CodeSpan& span) {
    return span.place.part == ProfilePart::kPack;
  });
  EXPECT_EQ(is_packed, has_lines);
  EXPECT_TRUE(is_packed);
}

}  // namespace
}  // namespace loopfleet::worker
