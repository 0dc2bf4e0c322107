// Runs every golden case through RunReplay and compares it field by field. A field that is neither
// compared nor listed below as not compared fails the test, so none is skipped silently.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/commands/replay.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/text/text.h"
#include "tests/support/paths.h"

namespace loopfleet::client {
namespace {

using Json = nlohmann::json;

std::vector<Json> ReadCases(const std::string& name) {
  std::ifstream file(std::string(LOOPFLEET_SOURCE_DIR) + "/tests/golden/looptree/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  std::vector<Json> cases;
  for (std::string line; std::getline(file, line);) cases.push_back(Json::parse(line));
  return cases;
}

Json Replayed(const Json& request) {
  std::istringstream in(request.dump() + "\n");
  std::ostringstream out;
  RunReplay(in, out);
  return Json::parse(out.str());
}

std::string Stripped(const std::string& text) {
  std::istringstream in(text);
  std::string stripped;
  for (std::string line; std::getline(in, line);) {
    line.erase(line.find_last_not_of(" \t") + 1);
    stripped += line + "\n";
  }
  return stripped;
}

bool HasViews(const std::string& ir) { return ir.find("\nn:3:") != std::string::npos; }

// The tree that the text describes, which does not depend on the order of its views' constraints.
std::string TreeOf(const std::string& ir) {
  const auto tree = looptree::ParseIr(ir);
  if (!tree) return "rejected: " + tree.error().message;
  return looptree::TreeText(*tree, {});
}

void ExpectFields(const Json& line, const std::set<std::string>& compared,
                  const std::set<std::string>& not_compared) {
  for (const auto& [key, value] : line.items()) {
    EXPECT_TRUE(compared.contains(key) || not_compared.contains(key)) << "new field " << key;
  }
}

void ExpectSameIr(const std::string& actual, const std::string& expected) {
  if (HasViews(expected)) {
    EXPECT_EQ(TreeOf(actual), TreeOf(expected));
  } else {
    EXPECT_EQ(actual, expected);
  }
}

void ExpectClose(const Json& actual, const Json& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (expected[i].is_array()) {
      ExpectClose(actual[i], expected[i]);
    } else {
      // Recorded as float32.
      const double value = expected[i].get<double>();
      EXPECT_NEAR(actual[i].get<double>(), value, 1e-6 * std::max(1.0, std::abs(value)));
    }
  }
}

void ExpectState(const Json& actual, const Json& expected) {
  ASSERT_FALSE(actual.contains("error")) << actual.dump();
  EXPECT_EQ(actual["cursor"], expected["cursor"]);
  EXPECT_EQ(actual["loop_tree"], Stripped(expected["loop_tree"]));
  EXPECT_EQ(actual["legal_actions"], expected["legal_actions_after"]);
  EXPECT_EQ(actual["flop_count"], expected["flops_count"]);
  ExpectSameIr(actual["ir"], expected["ir_after"]);
  ExpectClose(actual["loops_tensor"], expected["loops_tensor"]);
  ExpectClose(actual["stride_histogram"], expected["stride_histogram"]);
}

// Graphviz statements as a set: the original's order depends on hashes.
std::multiset<std::string> Statements(const std::string& dot) {
  std::istringstream in(dot);
  std::multiset<std::string> statements;
  for (std::string line; std::getline(in, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (!line.empty()) statements.insert(line);
  }
  return statements;
}

// Corrects the original's `dot_tree`, which has edges "0 -> 1" between nodes "L0" and "L1".
std::multiset<std::string> Mended(const std::multiset<std::string>& statements) {
  static const std::regex edge("^([0-9]+) -> ([0-9]+);$");
  std::multiset<std::string> mended;
  for (const std::string& statement : statements) {
    mended.insert(std::regex_replace(statement, edge, "L$1 -> L$2;"));
  }
  return mended;
}

void ExpectGraphs(Json request, const Json& line) {
  request["every_step"] = false;
  request["observations"] = {"dot", "dot_tree", "dot_graph"};
  const Json out = Replayed(request);
  EXPECT_EQ(Statements(out["dot"]), Statements(line["dot"]));
  EXPECT_EQ(Statements(out["dot_tree"]), Mended(Statements(line["dot_tree"])));
  EXPECT_EQ(Statements(out["dot_graph"]), Statements(line["dot_graph"]));
}

// "equals_prefix_state": n undos at the end restore the state before the last n actions.
void ExpectUndone(Json request, const Json& out) {
  Json& actions = request["actions"];
  std::size_t undone = 0;
  while (!actions.empty() && actions.back() == "undo_action") {
    actions.erase(actions.size() - 1);
    ++undone;
  }
  ASSERT_GT(undone, 0u);
  while (undone-- > 0 && !actions.empty()) actions.erase(actions.size() - 1);
  const Json prefix = Replayed(request);
  EXPECT_EQ(out["loop_tree"], prefix["loop_tree"]);
  EXPECT_EQ(out["ir"], prefix["ir"]);
}

void ReportCompared(const std::string& what, std::size_t lines, std::size_t steps) {
  std::cout << what << ": " << lines << " lines and " << steps << " steps compared\n";
}

TEST(LoopTreeGolden, Simple) {
  const auto cases = ReadCases("simple.jsonl");
  ASSERT_GE(cases.size(), 100u);
  std::size_t steps = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE("simple.jsonl line " + std::to_string(i + 1));
    const Json& line = cases[i];
    ExpectFields(line,
                 {"uri", "actions", "action_states", "orders", "action_state", "mode", "thread",
                  "loop_tree"},
                 {"category", "differs_from_original"});
    const Json out =
        Replayed({{"uri", line["uri"]}, {"actions", line["actions"]}, {"every_step", true}});
    ASSERT_FALSE(out.contains("error")) << out.dump();
    EXPECT_EQ(out["loop_tree"], Stripped(line["loop_tree"]));
    for (const char* key : {"action_state", "action_states", "mode", "thread"}) {
      EXPECT_EQ(out[key], line[key]) << key;
    }
    steps += line["actions"].size();
    if (HasFailure()) break;
  }
  ReportCompared("simple.jsonl", cases.size(), steps);
}

TEST(LoopTreeGolden, SimpleOrders) {
  for (const Json& line : ReadCases("simple.jsonl")) {
    const auto benchmark =
        looptree::OpenBenchmark(looptree::BenchmarkUri{line["uri"].get<std::string>()});
    ASSERT_TRUE(benchmark.has_value());
    looptree::SimpleWalk walk(*benchmark);
    const auto actions = looptree::ParseActions(line["actions"].get<std::vector<std::string>>());
    ASSERT_TRUE(actions.has_value());
    ASSERT_EQ(actions->size(), line["orders"].size());
    for (std::size_t i = 0; i < actions->size(); ++i) {
      ASSERT_TRUE(walk.Apply((*actions)[i]).has_value());
      Json orders = Json::array();
      for (const auto& order : walk.orders()) orders.push_back({order.size, order.tail});
      ASSERT_EQ(orders, line["orders"][i]) << line.dump();
    }
  }
}

TEST(LoopTreeGolden, Agent) {
  const auto cases = ReadCases("agent.jsonl");
  ASSERT_GE(cases.size(), 300u);
  std::size_t steps = 0;
  std::size_t graphs = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Json& line = cases[i];
    SCOPED_TRACE("agent.jsonl line " + std::to_string(i + 1) + " " + line["name"].dump());
    ExpectFields(line,
                 {"ir", "action_space", "merge_all_first", "start_cursor", "initial", "actions",
                  "steps", "cursor", "loop_tree", "ir_after", "legal_actions_after", "flops_count",
                  "loops_tensor", "stride_histogram", "equals_prefix_state", "pre_merge_loop_tree",
                  "dot", "dot_tree", "dot_graph"},
                 // Labels, a second description of the input, and whether the recorder's own text
                 // round trip was exact.
                 {"id", "name", "mode", "category", "program", "loop_tool_version",
                  "roundtrip_exact", "roundtrip_same_tree", "loops"});
    Json request = {{"ir", line["ir"]},
                    {"actions", Json::array()},
                    {"every_step", true},
                    {"rules", "loop_nest"},
                    {"action_space", line["action_space"]},
                    {"features", "agent20"},
                    {"merge_all_first", line["merge_all_first"]},
                    {"start_cursor", line.value("start_cursor", 0)}};
    if (!line["initial"].is_null()) ExpectState(Replayed(request), line["initial"]);
    if (line.contains("pre_merge_loop_tree")) {
      EXPECT_EQ(TreeOf(line["ir"]), Stripped(line["pre_merge_loop_tree"]));
    }
    request["actions"] = line["actions"];
    const Json out = Replayed(request);
    ExpectState(out, line);
    if (line.contains("dot")) {
      ExpectGraphs(request, line);
      ++graphs;
    }
    const Json& expected_steps = line["steps"];
    if (line["category"] == "undo") {
      ASSERT_TRUE(expected_steps.empty());  // only the final state was recorded
      ExpectUndone(request, out);
      continue;
    }
    ASSERT_EQ(out["steps"].size(), expected_steps.size());
    for (std::size_t s = 0; s < expected_steps.size(); ++s) {
      SCOPED_TRACE("step " + std::to_string(s));
      const Json& expected = expected_steps[s];
      const Json& actual = out["steps"][s];
      ExpectFields(expected, {"action", "legal", "cursor", "loop_tree", "legal_actions_after"},
                   // Why the original rejected the action and the tree it would have built; whether
                   // an action changed anything.
                   {"reject_reason", "would_be_loop_tree", "action_had_effect"});
      EXPECT_EQ(actual["legal"], expected["legal"]);
      EXPECT_EQ(actual["cursor"], expected["cursor"]);
      if (expected.contains("loop_tree")) {
        EXPECT_EQ(actual["loop_tree"], Stripped(expected["loop_tree"]));
      }
      if (expected.contains("legal_actions_after")) {
        EXPECT_EQ(actual["legal_actions"], expected["legal_actions_after"]);
      }
      ++steps;
    }
    if (HasFailure()) break;
  }
  EXPECT_GE(graphs, 40u);
  ReportCompared("agent.jsonl", cases.size(), steps);
}

TEST(LoopTreeGolden, Agent58Features) {
  const auto cases = ReadCases("agent_58_features.jsonl");
  ASSERT_GE(cases.size(), 30u);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Json& line = cases[i];
    SCOPED_TRACE("agent_58_features.jsonl line " + std::to_string(i + 1));
    ExpectFields(line,
                 {"ir", "actions", "cursor", "loop_tree", "ir_after", "legal_actions_after",
                  "flops_count", "loops_tensor", "stride_histogram"},
                 {"id", "name", "max_loops", "num_loop_features", "loop_tool_version"});
    const Json out =
        Replayed({{"ir", line["ir"]}, {"actions", line["actions"]}, {"features", "agent58"}});
    ExpectState(out, line);
    if (HasFailure()) break;
  }
  ReportCompared("agent_58_features.jsonl", cases.size(), 0);
}

}  // namespace
}  // namespace loopfleet::client
