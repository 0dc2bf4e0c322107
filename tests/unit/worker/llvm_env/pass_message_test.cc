#include "worker/llvm_env/pass_message.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

TEST(PassMessage, RequestsAreReadBack) {
  const std::vector<Episode> episodes = {
      {.passes = {"a", "b"}, .wanted = {{passes::Observation::kInstCount, {1}}}}};
  const auto walk = DecodePassRequest(
      Encode(PassRequest(WalkRequest{.slot = 3, .baselines = 5, .tree = Plant(episodes).tree})));
  ASSERT_TRUE(walk);
  const auto& read = std::get<WalkRequest>(*walk);
  EXPECT_EQ(read.slot, 3);
  EXPECT_EQ(read.baselines, 5U);
  EXPECT_EQ(read.tree.texts, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(read.tree.nodes.size(), 3U);
  EXPECT_EQ(read.tree.nodes[2].parent, 1U);
  EXPECT_EQ(read.tree.nodes[2].text, 1U);
  EXPECT_NE(read.tree.nodes[1].wanted, 0U);
  EXPECT_FALSE(read.in_place);
  const auto in_place = DecodePassRequest(Encode(PassRequest(WalkRequest{
      .tree = Plant(episodes).tree,
      .in_place = WalkRequest::InPlace{.program_instructions = 7, .spent = Nanos{9}}})));
  ASSERT_TRUE(in_place);
  ASSERT_TRUE(std::get<WalkRequest>(*in_place).in_place);
  EXPECT_EQ(std::get<WalkRequest>(*in_place).in_place->program_instructions, 7U);
  EXPECT_EQ(std::get<WalkRequest>(*in_place).in_place->spent, Nanos{9});
  const auto load = DecodePassRequest(Encode(PassRequest(LoadRequest{.slot = 1, .bitcode = "BC"})));
  ASSERT_TRUE(load);
  EXPECT_EQ(std::get<LoadRequest>(*load).bitcode, "BC");
  EXPECT_FALSE(DecodePassRequest(Encode(PassRequest(LoadRequest{.slot = kProgramSlots}))));
  const auto branch = DecodePassRequest(Encode(PassRequest(BranchRequest{})));
  ASSERT_TRUE(branch);
  EXPECT_TRUE(std::holds_alternative<BranchRequest>(*branch));
}

TEST(PassMessage, RecordsAreReadBackAndCutOnesAreJunk) {
  const PassFailure failure{.reason = PassFailure::Reason::kCrashed, .signal = 11, .message = "!"};
  const std::string bytes =
      Encode(PassRecord(StepRecord{.node = 1, .changed = true})) +
      Encode(PassRecord(ValueRecord{.node = 1,
                                    .observation = passes::Observation::kInstCount,
                                    .value = std::vector<std::int64_t>{1, 2}})) +
      Encode(PassRecord(ValueRecord{.node = 1,
                                    .observation = passes::Observation::kInstCountNorm,
                                    .value = std::vector<float>{0.5F}})) +
      Encode(PassRecord(ValueRecord{
          .node = 1, .observation = passes::Observation::kIr, .value = std::string("x")})) +
      Encode(PassRecord(FailureRecord{.node = 2, .failure = failure}));
  const auto records = DecodeRecords(bytes);
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 5U);
  EXPECT_TRUE(std::get<StepRecord>((*records)[0]).changed);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(std::get<ValueRecord>((*records)[1]).value),
            (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(std::get<std::vector<float>>(std::get<ValueRecord>((*records)[2]).value),
            std::vector<float>{0.5F});
  EXPECT_EQ(std::get<std::string>(std::get<ValueRecord>((*records)[3]).value), "x");
  EXPECT_EQ(std::get<FailureRecord>((*records)[4]).failure, failure);
  EXPECT_FALSE(DecodeRecords(bytes.substr(0, bytes.size() - 1)));
}

TEST(PassMessage, RepliesAreReadBack) {
  const auto loaded =
      DecodePassReply(Encode(PassReply(LoadedReply{.module_hash = "aa", .instruction_count = 7})));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(std::get<LoadedReply>(*loaded).module_hash, "aa");
  EXPECT_EQ(std::get<LoadedReply>(*loaded).instruction_count, 7U);
  for (const std::optional<std::uint64_t> end : {std::optional<std::uint64_t>(), {9}}) {
    const auto part = DecodePassReply(
        Encode(PassReply(RecordsReply{.records = "r", .instructions_at_end = end})));
    ASSERT_TRUE(part);
    EXPECT_EQ(std::get<RecordsReply>(*part).records, "r");
    EXPECT_EQ(std::get<RecordsReply>(*part).instructions_at_end, end);
  }
  EXPECT_FALSE(DecodePassReply("junk"));
  EXPECT_FALSE(DecodePassReply(""));
}

}  // namespace
}  // namespace loopfleet::worker
