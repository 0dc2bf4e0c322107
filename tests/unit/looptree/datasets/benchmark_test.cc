#include "common/looptree/datasets/benchmark.h"

#include <gtest/gtest.h>

#include <set>

#include "common/looptree/text/text.h"

namespace loopfleet::looptree {
namespace {

RejectionCode CodeOf(const std::string& uri, const Limits& limits = {}) {
  const auto opened = OpenBenchmark(BenchmarkUri{uri}, limits);
  EXPECT_FALSE(opened.has_value()) << uri;
  return opened ? RejectionCode::kUnsupported : opened.error().code;
}

std::string MessageOf(const std::string& uri) {
  const auto opened = OpenBenchmark(BenchmarkUri{uri});
  return opened ? "opened" : opened.error().message;
}

TEST(Benchmark, VectorLengths) {
  for (const char* length :
       {"0", "-1", "8388608", "2147483648", "9223372036854775807", "9223372036854775808", "1_000",
        "+5", "05", " 5", "5 ", "", "x", "5/6", "0x10", "1e3"}) {
    EXPECT_EQ(CodeOf(std::string("benchmark://loop_tool-cpu-v0/") + length),
              RejectionCode::kInvalidBenchmark)
        << length;
  }
  const auto largest = OpenBenchmark(BenchmarkUri{"benchmark://loop_tool-cuda-v0/8388607"});
  ASSERT_TRUE(largest.has_value());
  EXPECT_EQ(largest->target, Target::kCuda);
  EXPECT_EQ(largest->dialect, Dialect::kSimple);
  EXPECT_EQ(FlopCount(largest->start.program()), 8388607u);
  EXPECT_EQ(TensorBytes(largest->start.program()), 3u * 4 * 8388607);
}

TEST(Benchmark, MatrixProductNameIsMNK) {
  const auto opened = OpenBenchmark(BenchmarkUri{"benchmark://mm-v0/mm2_3_4"});
  ASSERT_TRUE(opened.has_value());
  const Program& program = opened->start.program();
  EXPECT_EQ(program.dims, (std::vector<Dim>{{"m", 2}, {"k", 4}, {"n", 3}}));
  EXPECT_EQ(FlopCount(program), 2u * 2 * 3 * 4);
  EXPECT_EQ(TreeText(opened->start, {}),
            "for m in 2 : L0\n"
            " for k in 4 : L1\n"
            "  for n in 3 : L2\n"
            "   %2[m, k, n] <- multiply(%0, %1)\n"
            "   %3[m, n] <- add(%2)\n"
            " for n in 3 : L5\n"
            "  %4[m, n] <- write(%3)\n");
}

TEST(Benchmark, HostileMatrixSizes) {
  for (const char* name : {"mm0_1_1", "mm1_1", "mm1_1_1_1", "mm-1_1_1", "mm1__1", "mm", "64_64_64",
                           "mm9223372036854775808_1_1", "mm1_1_1_"}) {
    EXPECT_EQ(CodeOf(std::string("benchmark://mm-v0/") + name), RejectionCode::kInvalidBenchmark)
        << name;
  }
  EXPECT_EQ(CodeOf("benchmark://mm-v0/mm9223372036854775807_9223372036854775807_2"),
            RejectionCode::kLimitFlops);
  EXPECT_EQ(CodeOf("benchmark://mm-v0/mm2147483648_2147483648_2147483648"),
            RejectionCode::kLimitFlops);
  EXPECT_EQ(CodeOf("benchmark://mm-v0/mm16384_16384_65536"), RejectionCode::kLimitFootprint);
  EXPECT_EQ(CodeOf("benchmark://mm-v0/mm20000_20000_20000", {.footprint_bytes = 1ull << 40}),
            RejectionCode::kLimitFlops);
  EXPECT_EQ(CodeOf("benchmark://mm64_256_16_range-v0/mm64_64_65"),
            RejectionCode::kInvalidBenchmark);
  EXPECT_EQ(CodeOf("benchmark://mm64_256_16_range-v0/mm272_64_64"),
            RejectionCode::kInvalidBenchmark);
}

TEST(Benchmark, ANumberThatIsNoneIsNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {"mm-v0/mm99999999999999999999_64_64",
       "'99999999999999999999' is too large: at most 9223372036854775807"},
      {"mm-v0/mm64_064_64", "with sizes of at least 1; '064' has a leading zero"},
      {"conv-v0/conv1_8_16_16__8_8_3_03", "KW <= W; '03' has a leading zero"},
      {"program-v0/positive_product033_48_64", "at least 1; '033' has a leading zero"}};
  for (const auto& [name, wanted] : cases) {
    const std::string message = MessageOf("benchmark://" + name);
    EXPECT_TRUE(message.ends_with(wanted)) << message;
  }
}

TEST(Benchmark, UnknownDatasetsOfferTheNearest) {
  EXPECT_NE(MessageOf("benchmark://mm-v1/mm1_1_1").find("nearest: benchmark://mm-v0/"),
            std::string::npos);
  EXPECT_NE(MessageOf("benchmark://loop_tool-cpu/5").find("nearest: benchmark://loop_tool-cpu-v0/"),
            std::string::npos);
  EXPECT_EQ(MessageOf("\xff\xfe\n").find("unknown benchmark '\\xff\\xfe\\x0a'"), 0u);
  EXPECT_EQ(MessageOf("größe").find("unknown benchmark 'größe'"), 0u);
  EXPECT_LT(MessageOf(std::string(1 << 20, 'x')).size(), 200u);
}

TEST(Benchmark, Convolution) {
  const auto opened = OpenBenchmark(BenchmarkUri{"benchmark://conv-v0/conv1_8_16_16__8_8_3_3"});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(FlopCount(opened->start.program()), 2u * 8 * 14 * 14 * 3 * 3 * 8);
  for (const char* name : {"conv1_8_16_16__8_7_3_3", "conv1_8_2_16__8_8_3_3", "conv1_8_16_16",
                           "conv1_8_16_16__8_8_3", "conv1_8_16_0__8_8_3_3"}) {
    EXPECT_EQ(CodeOf(std::string("benchmark://conv-v0/") + name), RejectionCode::kInvalidBenchmark);
  }
}

TEST(Benchmark, DatasetMembersOpen) {
  for (const Dataset& dataset : Datasets()) {
    EXPECT_TRUE(OpenBenchmark(BenchmarkUri{std::string(dataset.example)}).has_value())
        << dataset.example;
    if (dataset.size == 0) continue;
    for (const std::uint64_t index : {std::uint64_t{0}, dataset.size / 2, dataset.size - 1}) {
      // Three members of conv_test-v0 exceed the default footprint.
      const BenchmarkUri uri{DatasetMember(dataset, index)};
      EXPECT_TRUE(OpenBenchmark(uri, {.footprint_bytes = 1ull << 40}).has_value()) << uri.text;
    }
  }
  const Dataset& range = Datasets()[2];
  ASSERT_EQ(range.size, 2197u);
  std::set<std::string> members;
  for (std::uint64_t i = 0; i < range.size; ++i) members.insert(DatasetMember(range, i));
  EXPECT_EQ(members.size(), 2197u);
  EXPECT_EQ(DatasetMember(range, 0), "benchmark://mm64_256_16_range-v0/mm64_64_64");
  EXPECT_EQ(DatasetMember(range, 1), "benchmark://mm64_256_16_range-v0/mm64_64_80");
  EXPECT_EQ(DatasetMember(range, 2196), "benchmark://mm64_256_16_range-v0/mm256_256_256");
}

}  // namespace
}  // namespace loopfleet::looptree
