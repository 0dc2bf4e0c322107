// The golden cases of the LLVM environment (llvm/README.md): features and graphs recorded from
// CompilerGym 0.2.5 and programl 0.3.2, instruction counts from opt-19.

#include <gtest/gtest.h>
#include <llvm/IR/Module.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/llvm_passes/observation.h"
#include "tests/support/paths.h"
#include "worker/llvm_env/observations/autophase.h"
#include "worker/llvm_env/observations/inst_count.h"
#include "worker/llvm_env/observations/programl.h"
#include "worker/llvm_env/pass_runner.h"
#include "worker/llvm_env/program_module.h"
#include "worker/llvm_env/x86_target.h"

namespace loopfleet::worker {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kFolder = LOOPFLEET_SOURCE_DIR "/tests/golden/llvm";

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The files whose names begin with `prefix` and end with .json.
std::vector<Json> CasesOf(const std::string& prefix) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(prefix) && name.ends_with(".json")) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  EXPECT_FALSE(paths.empty()) << prefix;
  std::vector<Json> cases;
  for (const auto& path : paths) cases.push_back(Json::parse(ReadFile(path)));
  return cases;
}

ProgramModule ReadModule(const std::string& file) {
  auto program = ProgramModule::Parse(ReadFile(kFolder / file));
  EXPECT_TRUE(program) << file << ": " << program.error().message;
  return *std::move(program);
}

Json Named(std::span<const std::string_view> names, const std::vector<std::int64_t>& values) {
  EXPECT_EQ(names.size(), values.size());
  Json named = Json::object();
  for (std::size_t i = 0; i < values.size(); ++i) named[std::string(names[i])] = values[i];
  return named;
}

TEST(GoldenLlvm, FeaturesAreThoseOfCompilerGym) {
  for (const Json& golden : CasesOf("v")) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const ProgramModule program = ReadModule(golden["file"]);
    EXPECT_EQ(Named(passes::InstCountNames(), InstCountOf(program.module())), golden["InstCount"]);
    EXPECT_EQ(Named(passes::AutophaseNames(), AutophaseOf(program.module())), golden["Autophase"]);
    EXPECT_EQ(program.InstructionCount(), golden["IrInstructionCount"].get<std::uint64_t>());
  }
}

// Equal, not only isomorphic: the order of nodes and edges is fixed.
TEST(GoldenLlvm, GraphsAreThoseOfPrograml) {
  for (const Json& golden : CasesOf("v")) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const auto graph = ProgramlOf(ReadModule(golden["file"]).module());
    ASSERT_TRUE(graph) << graph.error().message;
    Json nodes = Json::array();
    for (std::size_t i = 0; i < graph->node_type.size(); ++i) {
      nodes.push_back({{"id", i},
                       {"type", graph->node_type[i]},
                       {"text", graph->texts[graph->node_text[i]]},
                       {"function", graph->node_function[i]},
                       {"block", graph->node_block[i]}});
    }
    EXPECT_EQ(nodes, golden["Programl"]["nodes"]);
    Json edges = Json::array();
    for (std::size_t i = 0; i < graph->edge_flow.size(); ++i) {
      edges.push_back({{"flow", graph->edge_flow[i]},
                       {"position", graph->edge_position[i]},
                       {"source", graph->edge_source[i]},
                       {"target", graph->edge_target[i]}});
    }
    EXPECT_EQ(edges, golden["Programl"]["edges"]);
  }
}

TEST(GoldenLlvm, PassesLeaveAsManyInstructionsAsOptDoes) {
  InitializeX86();
  PassRunner runner;
  for (const Json& golden : CasesOf("p1")[0]["cases"]) {
    SCOPED_TRACE(golden.dump());
    const ProgramModule program = ReadModule(golden["file"]);
    for (const std::string pass : golden["passes"]) {
      const auto changed = runner.Run(pass, program.module());
      ASSERT_TRUE(changed) << changed.error().message;
    }
    EXPECT_EQ(program.InstructionCount(), golden["IrInstructionCount"].get<std::uint64_t>());
  }
}

}  // namespace
}  // namespace loopfleet::worker
