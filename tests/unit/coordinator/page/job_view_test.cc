#include "coordinator/page/job_view.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace loopfleet::coordinator {
namespace {

storage::StoredJob Asked(std::vector<looptree::Action> actions) {
  return {.spec = {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm8_8_8"},
                   .actions = std::move(actions)}};
}

TEST(JobView, ShowsTheTreeAfterEachStep) {
  const Json view =
      JobViewJson({{1}, 2}, Asked({looptree::Down{}, looptree::SwapUp{}, looptree::Split{4}}));
  EXPECT_EQ(view["job"], "1.2");
  EXPECT_EQ(view["state"], "unfinished");
  EXPECT_TRUE(view["outcome"].is_null());
  ASSERT_EQ(view["trail"].size(), 3U);
  EXPECT_EQ(view["trail"][1]["action"], "swap_up");
  EXPECT_NE(view["trail"][1]["loop_tree"], view["trail"][2]["loop_tree"]);
  EXPECT_TRUE(view["loop_tree"].get<std::string>().find("for k in 2") != std::string::npos)
      << view["loop_tree"];
}

TEST(JobView, AnIllegalActionEndsTheTrail) {
  const Json view = JobViewJson({{1}, 0}, Asked({looptree::Up{}, looptree::Down{}}));
  ASSERT_EQ(view["trail"].size(), 1U);
  EXPECT_EQ(view["trail"][0]["legal"], false);
  EXPECT_TRUE(view["loop_tree"].is_null());
}

TEST(JobView, ASkippedOneDoesNot) {
  auto job = Asked({looptree::Up{}, looptree::Down{}});
  job.spec.on_illegal = looptree::OnIllegal::kSkip;
  const Json view = JobViewJson({{1}, 0}, job);
  ASSERT_EQ(view["trail"].size(), 2U);
  EXPECT_FALSE(view["loop_tree"].is_null());
}

TEST(JobView, ShowsSoManyTreesAndEveryAction) {
  std::vector<looptree::Action> actions;
  for (int i = 0; i < 1024; ++i) {
    actions.emplace_back(looptree::Down{});
    actions.emplace_back(looptree::Up{});
  }
  actions.resize(1024);
  const Json view = JobViewJson({{1}, 0}, Asked(actions));
  ASSERT_EQ(view["trail"].size(), 1024U);
  EXPECT_FALSE(view["trail"][0]["loop_tree"].is_null());
  EXPECT_TRUE(view["trail"][1023]["loop_tree"].is_null());
  EXPECT_LT(view.dump().size(), 2 * kMaxStepBytes);
}

TEST(JobView, AProfileHasARowForEachLineOfTheTree) {
  EXPECT_TRUE(JobViewJson({{1}, 2}, Asked({}))["profile"].is_null());
  const Profile profile{.level = ProfileLevel::kLoops,
                        .overhead = 0.02,
                        .lines = {{.place = {.ref = 0}, .share = 0.75, .low = 0.7, .high = 0.8}}};
  const Json shown = JobViewJson({{1}, 2}, Asked({}), &profile)["profile"];
  EXPECT_EQ(shown["level"], "loops");
  EXPECT_EQ(shown["overhead"], 0.02);
  ASSERT_GT(shown["rows"].size(), 3U);
  EXPECT_EQ(shown["rows"][0]["total"], 0.75);
  EXPECT_EQ(shown["rows"][0]["known"], true);
  EXPECT_EQ(shown["rows"][0]["part"], "node");
  EXPECT_EQ(shown["rows"][1]["known"], false);
}

TEST(JobView, AProfileHasTheLinesOfThePortableC) {
  const Profile profile{.level = ProfileLevel::kLines,
                        .lines = {{.place = {.ref = 0, .part = ProfilePart::kPack}, .share = 0.1},
                                  {.place = {.ref = 1}, .share = 0.5},
                                  {.place = {.ref = 4, .part = ProfilePart::kZero}, .share = 0.1},
                                  {.place = {.ref = 4}, .share = 0.3}}};
  const Json shown = JobViewJson({{1}, 2}, Asked({}), &profile)["profile"];
  std::vector<std::string> lines;
  std::istringstream text(shown["c"].get<std::string>());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const auto line_of = [&](const char* part, int ref) {
    for (const Json& row : shown["rows"]) {
      if (row["part"] != part || row["ref"] != ref) continue;
      return row["c_line"].is_null() ? "none" : lines.at(row["c_line"].get<std::size_t>());
    }
    return std::string("no row");
  };
  EXPECT_EQ(line_of("node", 1), "    for (int64_t k = 0; k < 8; ++k) { /* L1: k in 8 */");
  EXPECT_EQ(line_of("node", 4), "        t3[n] += v2; /* %3 */");
  EXPECT_EQ(line_of("zero", 4), "      t3[n_init] = 0.0f; /* %3 */");
  EXPECT_EQ(line_of("pack", 0), "none");
}

TEST(JobView, CommandsSurviveAShell) {
  storage::StoredJob job{.spec = {.source = looptree::IrText{"it's $(not)\n `run`"}}};
  const Json view = JobViewJson({{1}, 0}, job);
  EXPECT_EQ(view["commands"][0]["command"],
            R"(printf '%s\n' '{"ir":"it'\''s $(not)\n `run`","actions":[],"every_step":true}')"
            " | loopfleet replay");
  EXPECT_TRUE(view["loop_tree"].is_null());
}

storage::StoredJob MeasuredOn(DeviceKind device, std::string isa) {
  storage::StoredJob job = Asked({});
  job.outcome.emplace();
  auto& hardware = job.outcome->evaluation.conditions.emplace().hardware;
  hardware.device = device;
  hardware.isa = std::move(isa);
  return job;
}

std::vector<std::string> CodeCommands(const storage::StoredJob& job) {
  std::vector<std::string> commands;
  const Json view = JobViewJson({{1}, 2}, job);
  for (const Json& one : view["commands"]) {
    const auto command = one["command"].get<std::string>();
    if (command.starts_with("loopfleet job code 1.2 ")) commands.push_back(command.substr(23));
  }
  return commands;
}

TEST(JobView, CodeIsPrintedForTheDeviceThatMeasuredIt) {
  using Commands = std::vector<std::string>;
  EXPECT_EQ(CodeCommands(Asked({})), (Commands{"--format c", "--format llvm-ir", "--format asm"}));
  EXPECT_EQ(CodeCommands(MeasuredOn(DeviceKind::kCpu, "avx2")),
            (Commands{"--format c", "--format llvm-ir --isa avx2", "--format asm --isa avx2"}));
  EXPECT_EQ(CodeCommands(MeasuredOn(DeviceKind::kCpu, "of tomorrow")),
            (Commands{"--format c", "--format llvm-ir", "--format asm"}));
  EXPECT_EQ(CodeCommands(MeasuredOn(DeviceKind::kCuda, "sm_90")),
            (Commands{"--format c", "--format llvm-ir", "--format ptx"}));
}

TEST(JobView, AProfileIsAskedForAsTheDeviceHasIt) {
  const auto profile_command = [](const storage::StoredJob& job) -> std::string {
    const Json view = JobViewJson({{1}, 2}, job);
    for (const Json& one : view["commands"]) {
      if (one["what"] == "where its time goes") return one["command"];
    }
    return "";
  };
  EXPECT_EQ(profile_command(MeasuredOn(DeviceKind::kCpu, "avx2")), "loopfleet job profile 1.2");
  EXPECT_EQ(profile_command(MeasuredOn(DeviceKind::kCuda, "sm_90")),
            "loopfleet job profile 1.2 --level roots");
}

}  // namespace
}  // namespace loopfleet::coordinator
