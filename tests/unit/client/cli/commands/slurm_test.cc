#include "client/cli/commands/slurm.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace loopfleet::client {
namespace {

using std::chrono::seconds;

SlurmRequest Request() {
  SlurmRequest request;
  request.workers = 4;
  request.program = "/opt/bin/loopfleet-worker";
  request.coordinator = "tcp://127.0.0.1:5571";
  return request;
}

bool Has(const std::vector<std::string>& command, const std::string& word) {
  return std::ranges::find(command, word) != command.end();
}

TEST(SlurmTime, IsReadAsSbatchReadsIt) {
  const auto seconds_in = [](std::string_view text) {
    const auto limit = ParseSlurmTime(text);
    return limit && *limit ? (*limit)->count() : -1;
  };
  EXPECT_EQ(seconds_in("90"), 5'400);
  EXPECT_EQ(seconds_in("1:30"), 90);
  EXPECT_EQ(seconds_in("8:00:00"), 28'800);
  EXPECT_EQ(seconds_in("2-12"), 216'000);
  EXPECT_EQ(seconds_in("1-0:30"), 88'200);
  EXPECT_EQ(seconds_in("1-00:00:01"), 86'401);
  const auto unlimited = ParseSlurmTime("UNLIMITED");
  ASSERT_TRUE(unlimited.has_value());
  EXPECT_FALSE(unlimited->has_value());
}

TEST(SlurmTime, NonsenseIsRefusedWithWhatIsMeant) {
  for (const char* text : {"", "soon", "1:2:3:4", "1-", "-5", "0", "8h", "1:", "1-1:1:1:1"}) {
    const auto limit = ParseSlurmTime(text);
    ASSERT_FALSE(limit.has_value()) << text;
    EXPECT_NE(limit.error().message.find("days-hours"), std::string::npos);
  }
}

TEST(SbatchCommand, SaysWhatWasAskedForAndLeavesTheRestToTheCluster) {
  SlurmRequest request = Request();
  auto command = SbatchCommand(request);
  ASSERT_TRUE(command.has_value()) << command.error().message;
  EXPECT_EQ(command->front(), "sbatch");
  EXPECT_TRUE(Has(*command, "--array=0-3"));
  EXPECT_TRUE(Has(*command, "--signal=B:USR1@120"));
  for (const std::string& word : *command) {
    EXPECT_FALSE(word.starts_with("--time") || word.starts_with("--partition")) << word;
  }
  request.partition = "short";
  request.account = "ml";
  request.time = "8:00:00";
  request.cpus = 4;
  request.gres = "gpu:1";
  request.labels = {"a", "b"};
  request.sbatch = {"--constraint=avx512"};
  command = SbatchCommand(request);
  ASSERT_TRUE(command.has_value()) << command.error().message;
  for (const char* word : {"--partition=short", "--account=ml", "--time=8:00:00", "--gres=gpu:1",
                           "--cpus-per-task=4", "--constraint=avx512", "a,b"}) {
    EXPECT_TRUE(Has(*command, word)) << word;
  }
  // sbatch's options come before the script, the worker's after it.
  const auto script = std::ranges::find(*command, "/dev/stdin");
  ASSERT_NE(script, command->end());
  EXPECT_LT(std::ranges::find(*command, "--constraint=avx512"), script);
  EXPECT_EQ(*(script + 1), request.program);
}

TEST(SbatchCommand, ADrainLongerThanTheTimeLimitIsRefused) {
  SlurmRequest request = Request();
  request.time = "2";
  request.drain_before = seconds(120);
  const auto command = SbatchCommand(request);
  ASSERT_FALSE(command.has_value());
  EXPECT_EQ(command.error().kind, ErrorKind::kInvalid);
  request.drain_before = seconds(119);
  EXPECT_TRUE(SbatchCommand(request).has_value());
}

TEST(SbatchCommand, AFarCoordinatorNeedsKeys) {
  SlurmRequest request = Request();
  request.coordinator = "tcp://10.0.0.1:5571";
  const auto refused = SbatchCommand(request);
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().message.starts_with(
      "--coordinator: 'tcp://10.0.0.1:5571' needs keys; add `--worker-keys DIR`"))
      << refused.error().message;
  request.keys = "/home/ada/keys";
  const auto command = SbatchCommand(request);
  ASSERT_TRUE(command.has_value()) << command.error().message;
  EXPECT_TRUE(Has(*command, "/home/ada/keys"));
}

TEST(Tasks, AreReadFromWhatSqueuePrints) {
  const auto tasks = ParseTasks(
      "12|0|RUNNING|node1|1:02|58:58|None|tcp://head:5571\n"
      "12|1|PENDING||0:00|1:00:00|Resources|tcp://head:5571\n"
      "13|N/A|RUNNING|node2|0:01|UNLIMITED|None|(null)\n"
      "14|3|PENDING||0:00|1:00|(held, so | sad)|a|b\n");
  ASSERT_TRUE(tasks.has_value()) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 3U);  // 13 is not an array
  EXPECT_EQ(tasks->at(0).id(), "12_0");
  EXPECT_EQ(tasks->at(0).label(), "slurm=12_0");
  EXPECT_EQ(tasks->at(0).reason, "");
  EXPECT_EQ(tasks->at(0).coordinator, "tcp://head:5571");
  EXPECT_TRUE(tasks->at(1).pending());
  EXPECT_EQ(tasks->at(1).reason, "Resources");
  EXPECT_TRUE(ParseTasks("").value().empty());
  EXPECT_FALSE(ParseTasks("slurm_load_jobs error: Unable to contact slurm controller").has_value());
}

TEST(TaskChoice, IsAllOrAnAllocationOrOneTask) {
  const SlurmTask task{.allocation = 12, .index = 3};
  EXPECT_TRUE(ParseTaskChoice("all")->Includes(task));
  EXPECT_TRUE(ParseTaskChoice("12")->Includes(task));
  EXPECT_TRUE(ParseTaskChoice("12_3")->Includes(task));
  EXPECT_FALSE(ParseTaskChoice("12_4")->Includes(task));
  EXPECT_FALSE(ParseTaskChoice("13")->Includes(task));
  for (const char* text : {"", "everything", "12_", "_3", "12_3_4", "12.3"}) {
    EXPECT_FALSE(ParseTaskChoice(text).has_value()) << text;
  }
}

TEST(SlurmWorkerScript, IsTheFileThatIsShipped) {
  EXPECT_TRUE(
      SlurmWorkerScript().starts_with("#!/bin/bash\n#SBATCH --job-name=loopfleet-worker\n"));
  EXPECT_NE(SlurmWorkerScript().find("\nexec \"$worker\" \"$@\" "), std::string_view::npos);
}

}  // namespace
}  // namespace loopfleet::client
