// Input lines of RunReplay: which it rejects, with which error, and that it continues afterwards.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/commands/replay.h"
#include "client/cli/exit_code.h"
#include "client/replay/observation.h"

namespace loopfleet::client {
namespace {

using Json = nlohmann::json;

constexpr char kGood[] = R"({"uri": "benchmark://mm-v0/mm8_8_8", "actions": ["split_2"]})";

struct Answers {
  int exit_code;
  std::vector<Json> lines;
};

Answers RunLines(const std::string& text) {
  std::istringstream in(text);
  std::ostringstream out;
  Answers answers{.exit_code = RunReplay(in, out)};
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) answers.lines.push_back(Json::parse(line));
  return answers;
}

Json ErrorOf(const std::string& line) {
  const Answers answers = RunLines(line + "\n" + kGood + "\n");
  EXPECT_EQ(answers.exit_code, kExitFailed) << line;
  EXPECT_EQ(answers.lines.size(), 2u) << line;
  EXPECT_TRUE(answers.lines.back().contains("loop_tree")) << line;  // the next line runs
  return answers.lines[0].value("error", Json());
}

TEST(ReplayLines, OneAnswerForEachLine) {
  const Answers answers = RunLines(std::string(kGood) + "\n\n  \n" + kGood);
  EXPECT_EQ(answers.exit_code, kExitOk);
  ASSERT_EQ(answers.lines.size(), 2u);
  EXPECT_EQ(answers.lines[0], answers.lines[1]);
  EXPECT_EQ(answers.lines[0]["flop_count"], 1024);
  EXPECT_EQ(answers.lines[0]["tree_key"].get<std::string>().size(), 32u);
  EXPECT_FALSE(answers.lines[0].contains("steps"));
}

TEST(ReplayLines, MalformedLines) {
  for (const char* line : {
           "nonsense",
           "[]",
           "{}",
           "null",
           R"({"uri": 5})",
           R"({"uri": "x", "ir": "y"})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "actions": "up"})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "actions": [5]})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "every_step": 1})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "rules": "loopnest"})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "features": 20})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "start_cursor": 3})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "start_cursor": -1})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "start_cursor": 1e3})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "start_cursor": 99999999999999999999})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "action_space": ["fly"]})",
           R"({"uri": "benchmark://mm-v0/mm8_8_8", "observations": ["loop_treee"]})",
           R"({"uri": "benchmark://loop_tool-cpu-v0/8", "observations": ["cursor"]})",
           "{\"uri\": \"\xff\xfe\"}",
           "{\"uri\": \"benchmark://mm-v0/mm8_8_8\"",
       }) {
    EXPECT_EQ(ErrorOf(line)["code"], "MALFORMED") << line;
  }
}

TEST(ReplayLines, UnknownKeysOfferTheNearest) {
  const Json error = ErrorOf(R"({"uri": "benchmark://mm-v0/mm8_8_8", "every_stepp": true})");
  EXPECT_EQ(error["message"], "unknown key 'every_stepp'; nearest: every_step");
}

TEST(ReplayLines, ABenchmarkMayBeCalledAsInAJobLine) {
  const Answers with_uri = RunLines(R"({"uri": "benchmark://mm-v0/mm8_8_8", "actions": ["down"]})");
  const Answers as_job =
      RunLines(R"({"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": ["down"]})");
  EXPECT_EQ(as_job.lines, with_uri.lines);
  EXPECT_EQ(ErrorOf(R"({"uri": "x", "benchmark": "y"})")["code"], "MALFORMED");
}

TEST(ReplayLines, BenchmarksAndActions) {
  EXPECT_EQ(ErrorOf(R"({"uri": "benchmark://mm-v0/mm0_8_8"})")["code"], "INVALID_BENCHMARK");
  EXPECT_EQ(ErrorOf(R"({"ir": "v:m\n"})")["code"], "INVALID_BENCHMARK");
  const Json error =
      ErrorOf(R"({"uri": "benchmark://mm-v0/mm8_8_8", "actions": ["down", "splt_4"]})");
  EXPECT_EQ(error["code"], "INVALID_ACTION");
  EXPECT_EQ(error["action_index"], 1);
  EXPECT_EQ(error["message"], "unknown action 'splt_4'; nearest: split_4");
  EXPECT_EQ(ErrorOf(R"({"uri": "benchmark://loop_tool-cpu-v0/8", "actions": ["swap_up"]})")["code"],
            "INVALID_ACTION");
  EXPECT_TRUE(ErrorOf("nonsense")["action_index"].is_null());
}

TEST(ReplayLines, LongAndDeepLinesAreRefused) {
  const Json error = ErrorOf("{\"uri\": \"" + std::string(2 << 20, 'x') + "\"}");
  EXPECT_EQ(error["code"], "MALFORMED");
  EXPECT_EQ(error["message"], "line 1 has more than 1048576 bytes");
  EXPECT_EQ(ErrorOf(std::string(500000, '['))["code"], "MALFORMED");
  EXPECT_EQ(
      ErrorOf("{\"actions\": " + std::string(200000, '[') + std::string(200000, ']') + "}")["code"],
      "MALFORMED");
  Json many = {{"uri", "benchmark://mm-v0/mm8_8_8"}, {"actions", Json::array()}};
  for (int i = 0; i < 5000; ++i) many["actions"].push_back("up");
  EXPECT_EQ(ErrorOf(many.dump())["code"], "LIMIT_ACTIONS");
}

TEST(ReplayLines, IllegalActionsAreSkippedAndShown) {
  const Answers answers = RunLines(
      R"({"uri": "benchmark://mm-v0/mm8_8_8", "actions": ["up", "down"], "every_step": true})");
  const Json& steps = answers.lines.at(0)["steps"];
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0]["legal"], false);
  EXPECT_EQ(steps[0]["cursor"], 0);
  EXPECT_EQ(steps[1]["legal"], true);
  EXPECT_EQ(steps[1]["cursor"], 1);
}

TEST(ReplayLines, ObservationsChooseWhatIsAnswered) {
  const Answers answers = RunLines(
      R"({"uri": "benchmark://mm-v0/mm8_8_8", "observations": ["flop_count", "tree_key"]})");
  EXPECT_EQ(answers.lines.at(0).size(), 2u);
  EXPECT_EQ(answers.lines[0]["flop_count"], 1024);
}

// The answer to one line. `line` may contain line breaks.
Json AnswerTo(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  return RunLines(line).lines.at(0);
}

TEST(ReplayLines, EveryObservationOfADialectHasAValue) {
  for (const auto& [dialect, uri] :
       {std::pair(looptree::Dialect::kSimple, "benchmark://loop_tool-cpu-v0/10"),
        std::pair(looptree::Dialect::kAgent, "benchmark://mm-v0/mm8_8_8")}) {
    Json request = {{"uri", uri}, {"observations", Json::array()}};
    for (const Observation& row : Observations()) {
      if (row.In(dialect)) request["observations"].push_back(row.name);
    }
    const Json answer = AnswerTo(request.dump());
    ASSERT_FALSE(answer.contains("error")) << answer.dump();
    for (const auto& name : request["observations"]) {
      EXPECT_FALSE(answer[name.get<std::string>()].is_null()) << name;
    }
    EXPECT_EQ(answer.size(), request["observations"].size());
    // Without a list of observations: the dialect's defaults.
    const Json plain = AnswerTo(Json{{"uri", uri}}.dump());
    for (const Observation& row : Observations()) {
      EXPECT_EQ(plain.contains(row.name), row.IsDefault(dialect)) << row.name;
    }
  }
}

TEST(ReplayLines, PaddedTensors) {
  const std::string start =
      R"({"uri": "benchmark://mm-v0/mm8_8_8", "observations": ["loops_tensor")";
  EXPECT_EQ(AnswerTo(start + R"(], "max_loops": 10})")["loops_tensor"].size(), 200u);
  EXPECT_EQ(
      AnswerTo(start + R"(], "max_loops": 20, "features": "agent58"})")["loops_tensor"].size(),
      1160u);
  const Json error = ErrorOf(start + R"(], "max_loops": 3})");
  EXPECT_EQ(error["code"], "LIMIT_TREE");
  for (const std::string bad : {"0", "-1", "257", "\"10\"", "1.5", "18446744073709551615"}) {
    const Json failed = ErrorOf(start + "], \"max_loops\": " + bad + "}");
    EXPECT_EQ(failed["code"], "MALFORMED") << bad;
    const std::string message = failed["message"];
    EXPECT_TRUE(message.ends_with(bad == "\"10\"" ? "not string" : "not " + bad)) << message;
  }
  const std::string strides =
      R"({"uri": "benchmark://mm-v0/mm8_8_8", "observations": ["stride_tensor")";
  EXPECT_EQ(AnswerTo(strides + "]}")["stride_tensor"].size(), 16u);
  EXPECT_EQ(AnswerTo(strides + R"(], "features": "agent58"})")["stride_tensor"].size(), 32u);
  EXPECT_EQ(AnswerTo(strides + R"(], "stride_buckets": 32})")["stride_tensor"].size(), 32u);
  EXPECT_EQ(ErrorOf(strides + R"(], "stride_buckets": 20})")["code"], "MALFORMED");
}

TEST(ReplayLines, PreviousActionsCountInTheCallersSpace) {
  const Json answer = AnswerTo(
      R"({"uri": "benchmark://mm-v0/mm8_8_8", "action_space": ["up", "down", "swap_down"],
          "actions": ["up", "down", "swap_down"], "observations": ["5_prev_actions_tensor"]})");
  // The illegal up is not recorded.
  EXPECT_EQ(answer["5_prev_actions_tensor"],
            Json({0., 0., 1., 0., 1., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.}));
}

TEST(ReplayLines, StepsShowWhatWasAskedFor) {
  const Json agent = AnswerTo(
      R"({"uri": "benchmark://mm-v0/mm8_8_8", "actions": ["split_2", "down"], "every_step": true,
          "observations": ["tree_key", "scratch_bytes"]})");
  ASSERT_EQ(agent["steps"].size(), 2u);
  for (const char* key :
       {"action", "legal", "cursor", "loop_tree", "legal_actions", "tree_key", "scratch_bytes"}) {
    EXPECT_TRUE(agent["steps"][0].contains(key)) << key;
  }
  EXPECT_EQ(agent["steps"][0]["tree_key"], agent["tree_key"]);
  const Json simple = AnswerTo(
      R"({"uri": "benchmark://loop_tool-cpu-v0/10", "actions": ["toggle_mode", "up"],
          "every_step": true, "observations": ["mode", "tree_key"]})");
  EXPECT_EQ(simple["action_states"].size(), 2u);
  ASSERT_EQ(simple["steps"].size(), 2u);
  EXPECT_EQ(simple["steps"][0]["mode"], "select");
}

TEST(ReplayLines, EveryStepShowsItsTreeInDialectSimple) {
  const Json simple = AnswerTo(
      R"({"uri": "benchmark://loop_tool-cpu-v0/10", "actions": ["toggle_mode", "up",
          "toggle_thread"], "every_step": true})");
  EXPECT_EQ(simple["action_states"].size(), 3u);
  ASSERT_EQ(simple["steps"].size(), 3u);
  EXPECT_EQ(simple["steps"][1]["action"], "up");
  EXPECT_EQ(simple["steps"][1]["legal"], true);
  EXPECT_NE(simple["steps"][1]["loop_tree"], simple["loop_tree"]);
  EXPECT_EQ(simple["steps"][2]["loop_tree"], simple["loop_tree"]);
  EXPECT_EQ(simple["steps"][2].size(), 3u);
}

TEST(ReplayLines, EveryRuleSetIsAccepted) {
  // The last split makes 11 loops, which loop_nest alone forbids.
  const auto last_is_legal = [](const char* rules) -> Json {
    const Json line = {{"uri", "benchmark://mm-v0/mm256_64_64"},
                       {"actions", std::vector<std::string>(7, "split_2")},
                       {"every_step", true},
                       {"rules", rules}};
    return AnswerTo(line.dump())["steps"][6]["legal"];
  };
  EXPECT_EQ(last_is_legal("structural"), true);
  EXPECT_EQ(last_is_legal("loop_nest"), false);
  EXPECT_EQ(last_is_legal("loop_nest_58"), true);
  const Json error = ErrorOf(R"({"uri": "benchmark://mm-v0/mm8_8_8", "rules": "loop_nest_59"})");
  EXPECT_EQ(error["message"],
            "\"rules\" must be one of structural, loop_nest, loop_nest_58; nearest: loop_nest_58");
}

TEST(ReplayLines, TheOtherDialectsWordsAreNamed) {
  Json error = ErrorOf(R"({"uri": "benchmark://mm-v0/mm8_8_8", "actions": ["up", "toggle_mode"]})");
  EXPECT_EQ(error["code"], "INVALID_ACTION");
  EXPECT_EQ(error["action_index"], 1);
  EXPECT_EQ(error["message"], "'toggle_mode' belongs to dialect simple; this benchmark's is agent");
  error = ErrorOf(R"({"uri": "benchmark://loop_tool-cpu-v0/8", "actions": ["swap_up"]})");
  EXPECT_EQ(error["message"], "'swap_up' belongs to dialect agent; this benchmark's is simple");
  EXPECT_EQ(error["action_index"], 0);
  error = ErrorOf(R"({"uri": "benchmark://loop_tool-cpu-v0/8", "observations": ["cursor"]})");
  EXPECT_TRUE(error["message"].get<std::string>().starts_with(
      "observation \"cursor\" belongs to dialect agent; this benchmark's is simple"))
      << error;
  error = ErrorOf(R"({"uri": "benchmark://mm-v0/mm8_8_8", "action_space": ["toggle_thread"]})");
  EXPECT_EQ(error["code"], "MALFORMED");
}

TEST(ReplayLines, ParseErrorsNameTheKeyAndTheColumn) {
  EXPECT_EQ(ErrorOf(R"({"uri": "benchmark://mm-v0/mm8_8_8", "actions": [up]})")["message"],
            "not JSON: unexpected 'u' at column 50, behind the key 'actions'");
  EXPECT_EQ(ErrorOf("[]")["message"], "a line must be one JSON object, not array");
}

}  // namespace
}  // namespace loopfleet::client
