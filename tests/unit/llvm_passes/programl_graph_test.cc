#include "common/llvm_passes/programl_graph.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loopfleet::passes {
namespace {

// %y = add i32 %x, %x, without its function: two data edges between the same nodes.
ProgramlGraph Twice() {
  using enum ProgramlGraph::NodeType;
  using enum ProgramlGraph::Flow;
  return {.texts = {"[external]", "add", "i32"},
          .node_type = {kInstruction, kInstruction, kVariable},
          .node_text = {0, 1, 2},
          .node_function = {0, 0, 0},
          .node_block = {0, 0, 1},
          .edge_flow = {kData, kData},
          .edge_position = {0, 1},
          .edge_source = {2, 2},
          .edge_target = {1, 1}};
}

TEST(ProgramlGraph, IsDecodedAsItWasEncoded) {
  EXPECT_EQ(DecodePrograml(Encode(Twice())).value(), Twice());
}

TEST(ProgramlGraph, OtherBytesAreCorrupt) {
  const std::string whole = Encode(Twice());
  EXPECT_FALSE(DecodePrograml(""));
  EXPECT_FALSE(DecodePrograml("junk"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodePrograml(std::string_view(whole).substr(0, size))) << size;
  }
  ProgramlGraph wrong = Twice();
  wrong.edge_target[0] = 3;
  EXPECT_FALSE(DecodePrograml(Encode(wrong)));
  wrong = Twice();
  wrong.node_text[2] = 3;
  EXPECT_FALSE(DecodePrograml(Encode(wrong)));
  wrong = Twice();
  wrong.edge_flow.pop_back();
  EXPECT_FALSE(DecodePrograml(Encode(wrong)));
}

TEST(ProgramlGraph, ParallelEdgesHaveDifferentKeys) {
  const auto json = nlohmann::json::parse(ToNodeLinkJson(Twice()));
  ASSERT_EQ(json["nodes"].size(), 3U);
  EXPECT_EQ(json["nodes"][1]["text"], "add");
  ASSERT_EQ(json["links"].size(), 2U);
  EXPECT_EQ(json["links"][0]["key"], 0);
  EXPECT_EQ(json["links"][1]["key"], 1);
  EXPECT_EQ(json["links"][1]["position"], 1);
  EXPECT_TRUE(json["multigraph"]);
  EXPECT_FALSE(json["nodes"][1].contains("features"));
}

TEST(ProgramlGraph, FullTextsAreFeaturesOfAllNodesButTheFirst) {
  const std::vector<std::string> texts = {"", "%y = add i32 %x, %x", "i32 %x"};
  const auto json = nlohmann::json::parse(ToNodeLinkJson(Twice(), texts));
  EXPECT_FALSE(json["nodes"][0].contains("features"));
  EXPECT_EQ(json["nodes"][1]["features"], (nlohmann::json{{"full_text", {texts[1]}}}));
  EXPECT_EQ(json["nodes"][2]["features"]["full_text"][0], texts[2]);
}

}  // namespace
}  // namespace loopfleet::passes
