#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/datasets/loop_permutation.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

const Dataset& Named(std::string_view name) {
  const auto found = FindDataset(name);
  LF_CHECK(found.has_value(), "{}", name);
  return **found;
}

std::vector<std::string> MembersOf(std::string_view name) {
  std::vector<std::string> members;
  const Dataset& dataset = Named(name);
  for (std::uint64_t i = 0; i < dataset.size; ++i) members.push_back(DatasetMember(dataset, i));
  return members;
}

std::string MessageOf(const std::string& uri) {
  const auto opened = OpenBenchmark(BenchmarkUri{uri});
  return opened ? "opened" : opened.error().message;
}

TEST(Dataset, Sizes) {
  const std::pair<std::string_view, std::uint64_t> sizes[] = {{"loop_tool-cpu-v0", 8388607},
                                                              {"loop_tool-cuda-v0", 8388607},
                                                              {"mm64_256_16_range-v0", 2197},
                                                              {"mm128_128_128-v0", 6},
                                                              {"mm8_16_128_128-v0", 24},
                                                              {"mm8_16_8_16_128-v0", 120},
                                                              {"mm8_16_8_16_8_16-v0", 720},
                                                              {"conv64_8_1_1_24_24_64-v0", 5040},
                                                              {"conv_train-v0", 62},
                                                              {"conv_test-v0", 19},
                                                              {"mm-v0", 0},
                                                              {"conv-v0", 0}};
  for (const auto& [name, size] : sizes) EXPECT_EQ(Named(name).size, size) << name;
}

TEST(Dataset, FoundByAnySpelling) {
  EXPECT_EQ(&Named("mm-v0"), &Named("benchmark://mm-v0/"));
  EXPECT_EQ(&Named("mm-v0"), &Named("benchmark://mm-v0"));
  const auto missing = FindDataset("conv_trian-v0");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message, "unknown dataset 'conv_trian-v0'; nearest: conv_train-v0");
}

// The members of a permutation dataset are different trees of one program.
TEST(Dataset, PermutationsAreAllDifferentTreesOfOneProgram) {
  for (const char* name : {"mm128_128_128-v0", "mm8_16_128_128-v0", "mm8_16_8_16_128-v0",
                           "mm8_16_8_16_8_16-v0", "conv64_8_1_1_24_24_64-v0"}) {
    SCOPED_TRACE(name);
    const auto members = MembersOf(name);
    EXPECT_EQ(std::set<std::string>(members.begin(), members.end()).size(), members.size());
    EXPECT_TRUE(std::is_sorted(members.begin(), members.end()));
    std::set<TreeKey> keys;
    const Program first = Opened(members[0]).start.program();
    for (const std::string& member : members) {
      const Benchmark benchmark = Opened(member);
      EXPECT_EQ(benchmark.start.program(), first) << member;
      keys.insert(KeyOf(benchmark.start));
    }
    EXPECT_EQ(keys.size(), members.size());
  }
}

// As in the original dataset files: the digits name the loops m 8, m 16, k, n, outermost first.
TEST(Dataset, PermutedLoopsStandInTheOrderOfTheDigits) {
  EXPECT_EQ(TreeText(Opened("benchmark://mm8_16_128_128-v0/mm8_16_128_128_0312").start, {}),
            "for m in 8 : L0\n"
            " for n in 128 : L1\n"
            "  for m' in 16 : L2\n"
            "   for k in 128 : L3\n"
            "    %2[m, k, n] <- multiply(%0, %1)\n"
            "    %3[m, n] <- add(%2)\n"
            "   %4[m, n] <- write(%3)\n");
  const auto order = [](const std::string& uri) {
    std::string text;
    const LoopTree tree = Opened(uri).start;
    for (const LoopSpec& loop : tree.schedule()[2].loops) {
      text += tree.program().dims[loop.dim].name + std::to_string(loop.size) + " ";
    }
    return text;
  };
  EXPECT_EQ(order("benchmark://mm128_128_128-v0/mm128_128_128_120"), "k128 n128 m128 ");
  EXPECT_EQ(order("benchmark://mm8_16_128_128-v0/mm8_16_128_128_1302"), "m16 n128 m8 k128 ");
  EXPECT_EQ(order("benchmark://mm8_16_8_16_128-v0/mm8_16_8_16_128_34012"), "k16 n128 m8 m16 k8 ");
}

TEST(Dataset, PermutationNames) {
  EXPECT_EQ(PermutationName(3, 0), "012");
  EXPECT_EQ(PermutationName(3, 5), "210");
  std::string digits = "0123";
  for (std::uint64_t i = 0; i < PermutationCount(4); ++i) {
    EXPECT_EQ(PermutationName(4, i), digits);
    EXPECT_TRUE(ParsePermutation(digits, 4).has_value());
    std::next_permutation(digits.begin(), digits.end());
  }
  for (const char* bad : {"", "012", "01234", "0124", "0113", "01 3", "-123", "012/",
                          "\xff"
                          "123"}) {
    EXPECT_FALSE(ParsePermutation(bad, 4).has_value()) << bad;
  }
}

TEST(Dataset, ConvolutionShapes) {
  const auto train = MembersOf("conv_train-v0");
  const auto test = MembersOf("conv_test-v0");
  std::set<std::string> shapes;
  for (const auto* part : {&train, &test}) {
    for (const std::string& uri : *part) shapes.insert(uri.substr(uri.rfind('/')));
  }
  EXPECT_EQ(shapes.size(), 81u);
  // Shapes near the border between the two, as the original's two folders have them.
  const auto has = [](const std::vector<std::string>& members, const std::string& name) {
    return std::any_of(members.begin(), members.end(),
                       [&](const std::string& uri) { return uri.ends_with("/" + name); });
  };
  for (const char* name : {"conv1_128_256_256__64_128_3_3", "conv32_128_112_112__32_128_3_3",
                           "conv64_32_112_112__64_32_3_3", "conv64_32_256_256__1_32_3_3",
                           "conv64_128_56_56__64_128_3_3", "conv64_64_112_112__32_64_3_3"}) {
    EXPECT_TRUE(has(train, name)) << name;
  }
  for (const char* name : {"conv32_128_112_112__64_128_3_3", "conv32_128_256_256__1_128_3_3",
                           "conv32_32_256_256__32_32_3_3", "conv64_64_256_256__1_64_3_3",
                           "conv64_128_112_112__32_128_3_3", "conv64_64_112_112__64_64_3_3"}) {
    EXPECT_TRUE(has(test, name)) << name;
  }
  for (const std::string& uri : train) EXPECT_EQ(MessageOf(uri), "opened") << uri;
  // Only the biggest images exceed the default limit.
  int refused = 0;
  for (const std::string& uri : test) {
    const auto opened = OpenBenchmark(BenchmarkUri{uri});
    if (opened) continue;
    ++refused;
    EXPECT_EQ(opened.error().code, RejectionCode::kLimitFootprint) << uri;
    EXPECT_TRUE(
        OpenBenchmark(BenchmarkUri{uri}, {.footprint_bytes = std::uint64_t{16} << 30}).has_value());
  }
  EXPECT_EQ(refused, 3);
}

TEST(Dataset, NearMissesAreOffered) {
  const std::pair<const char*, const char*> cases[] = {
      {"benchmark://mm64_256_16_range-v0/mm64_70_300", "nearest: mm64_64_256"},
      {"benchmark://mm8_16_128_128-v0/mm8_16_128_128_0133", "nearest: mm8_16_128_128_0123"},
      {"benchmark://conv_train-v0/conv1_128_56_56__1_128_3_4",
       "nearest: conv1_128_56_56__1_128_3_3"},
      {"mm-v0/mm64_64_64", "nearest: benchmark://mm-v0/mm64_64_64"},
      {"benchmark://mm-v1/mm8_8_8", "nearest: benchmark://mm-v0/mm8_8_8"},
      {"benchmark://mm-v1/mm8_8", "nearest: benchmark://mm-v0/"},
      {"benchmark://conv_test/x", "nearest: benchmark://conv_test-v0/"},
      {"loop_tool-cpu-v0", "nearest: benchmark://loop_tool-cpu-v0/"},
  };
  for (const auto& [uri, wanted] : cases) {
    const std::string message = MessageOf(uri);
    EXPECT_TRUE(message.ends_with(wanted)) << uri << "\n" << message;
  }
}

TEST(Dataset, RandomBenchmarksAreMembersAndRepeat) {
  SplitMix64 one(7), same(7), other(8);
  std::set<std::string> datasets;
  bool differs = false;
  for (int i = 0; i < 200; ++i) {
    const std::string uri = RandomBenchmark(Datasets(), one);
    EXPECT_EQ(RandomBenchmark(Datasets(), same), uri);
    differs |= RandomBenchmark(Datasets(), other) != uri;
    const auto opened = OpenBenchmark(BenchmarkUri{uri}, {.footprint_bytes = 1ull << 40});
    EXPECT_TRUE(opened.has_value()) << uri;
    datasets.insert(uri.substr(0, uri.rfind('/') + 1));
  }
  EXPECT_TRUE(differs);
  EXPECT_GE(datasets.size(), 8u);
  SplitMix64 fixed(1);  // golden: a seed gives the same member on every machine, in every version
  EXPECT_EQ(RandomBenchmark(std::span(&Named("mm64_256_16_range-v0"), 1), fixed),
            "benchmark://mm64_256_16_range-v0/mm208_208_64");
}

}  // namespace
}  // namespace loopfleet::looptree
