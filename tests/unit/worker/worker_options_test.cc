#include "worker/worker_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/job/job_spec.h"

namespace loopfleet::worker {
namespace {

std::expected<WorkerConfig, StartupExit> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "loopfleet-worker");
  return ParseWorkerOptions(static_cast<int>(arguments.size()), arguments.data());
}

StartupExit Refusal(std::vector<const char*> arguments) {
  const auto config = Parse(std::move(arguments));
  EXPECT_FALSE(config);
  return config ? StartupExit{} : config.error();
}

TEST(WorkerOptionsTest, Defaults) {
  const WorkerConfig config = Parse({}).value();
  EXPECT_EQ(config.coordinator, "tcp://127.0.0.1:5571");
  EXPECT_EQ(config.http, "127.0.0.1:0");
  EXPECT_EQ(config.slots, 1U);
  EXPECT_EQ(config.run_limit, std::chrono::seconds(10));
  EXPECT_EQ(config.awake, std::chrono::seconds(1));
  EXPECT_EQ(config.compile_limit, std::chrono::seconds(2));
}

TEST(WorkerOptionsTest, FlagsAboveEnvironmentAboveFile) {
  const std::string file = testing::TempDir() + "loopfleet_worker_" + std::to_string(::getpid());
  std::ofstream(file) << "[worker]\ncoordinator = \"tcp://127.0.0.1:1\"\nrun-limit-ms = 7\n"
                         "compile-limit-ms = 8\n";
  ::setenv("LOOPFLEET_WORKER_COORDINATOR", "tcp://127.0.0.1:2", 1);
  ::setenv("LOOPFLEET_WORKER_RUN_LIMIT_MS", "70", 1);
  const WorkerConfig config =
      Parse({"--config", file.c_str(), "--coordinator", "tcp://127.0.0.1:3"}).value();
  ::unsetenv("LOOPFLEET_WORKER_COORDINATOR");
  ::unsetenv("LOOPFLEET_WORKER_RUN_LIMIT_MS");
  std::filesystem::remove(file);
  EXPECT_EQ(config.coordinator, "tcp://127.0.0.1:3");
  EXPECT_EQ(config.run_limit, std::chrono::milliseconds(70));
  EXPECT_EQ(config.compile_limit, std::chrono::milliseconds(8));
}

TEST(WorkerOptionsTest, AMisspeltVariableIsKeptForTheLog) {
  ::setenv("LOOPFLEET_WORKER_RUN_LIMIT", "70", 1);
  const WorkerConfig config = Parse({}).value();
  ::unsetenv("LOOPFLEET_WORKER_RUN_LIMIT");
  EXPECT_EQ(config.unknown_variables,
            (std::vector<std::string>{"'LOOPFLEET_WORKER_RUN_LIMIT' is no setting; nearest: "
                                      "LOOPFLEET_WORKER_RUN_LIMIT_MS"}));
}

TEST(WorkerOptionsTest, MistakesAreUsageErrors) {
  EXPECT_EQ(Refusal({"--no-such-flag"}).exit_code, kExitUsage);
  EXPECT_EQ(Refusal({"--slots", "many"}).exit_code, kExitUsage);
  EXPECT_EQ(Parse({"--awake-ms", "0"}).value().awake, Nanos{0});
  EXPECT_EQ(Refusal({"--awake-ms", "-1"}).exit_code, kExitUsage);
  EXPECT_EQ(Refusal({"--run-limit-ms", "0"}).exit_code, kExitUsage);
}

TEST(WorkerOptionsTest, TheSandboxMayBeRequired) {
  EXPECT_EQ(Parse({}).value().sandbox, SandboxDemand::kAny);
  EXPECT_EQ(Parse({"--require-sandbox=full"}).value().sandbox, SandboxDemand::kFull);
  EXPECT_EQ(Parse({"--require-sandbox", "any"}).value().sandbox, SandboxDemand::kAny);
  EXPECT_EQ(Refusal({"--require-sandbox", "half"}).exit_code, kExitBadConfig);
}

// Otherwise the coordinator would refuse to read the hello, and the worker would repeat it
// endlessly.
TEST(WorkerOptionsTest, LabelsAreText) {
  const StartupExit refused = Refusal({"--labels", "quiet,\xff\xfe"});
  EXPECT_EQ(refused.exit_code, kExitBadConfig);
  EXPECT_NE(refused.text.find("UTF-8"), std::string::npos) << refused.text;
  EXPECT_EQ(Parse({"--labels", "gro\xc3\x9f"}).value().labels.size(), 1U);
}

TEST(WorkerOptionsTest, LabelsAreAList) {
  EXPECT_EQ(Parse({"--labels", "quiet,rack=7"}).value().labels,
            (std::vector<std::string>{"quiet", "rack=7"}));
  const std::string long_one(kMostLabelBytes + 1, 'l');
  for (const char* wrong :
       {"isa=avx512", "quiet,host=n1", "device=cuda", "key=n1", long_one.c_str()}) {
    const StartupExit refused = Refusal({"--labels", wrong});
    EXPECT_EQ(refused.exit_code, kExitBadConfig) << wrong;
    EXPECT_NE(refused.text.find("--labels"), std::string::npos) << refused.text;
  }
}

TEST(WorkerOptionsTest, AHostsNameIsALabel) {
  EXPECT_EQ(Parse({}).value().host, "");
  EXPECT_EQ(Parse({"--host", "node-7"}).value().host, "node-7");
  for (const char* wrong : {"a,b", "\xff\xfe"}) {
    EXPECT_NE(Refusal({"--host", wrong}).text.find("--host"), std::string::npos) << wrong;
  }
}

TEST(WorkerOptionsTest, HelpIsNoMistake) {
  const StartupExit help = Refusal({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.text.find("--coordinator"), std::string::npos);
}

TEST(WorkerOptionsTest, WhatThisVersionCannotDoIsRefusedByName) {
  for (const char* device : {"tpu", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:0 ", "cuda:64"}) {
    const StartupExit refused = Refusal({"--device", device});
    EXPECT_EQ(refused.exit_code, kExitBadConfig) << device;
    EXPECT_NE(refused.text.find("cuda:0"), std::string::npos) << refused.text;
  }
  EXPECT_EQ(Refusal({"--slots", "2"}).exit_code, kExitBadConfig);
  EXPECT_EQ(Refusal({"--slots", "0"}).exit_code, kExitBadConfig);
  EXPECT_EQ(Refusal({"--keys", "/etc/keys"}).exit_code, kExitBadConfig);
  EXPECT_EQ(Refusal({"--log-level", "loud"}).exit_code, kExitBadConfig);
  EXPECT_EQ(Refusal({"--config", "/no/such/file"}).exit_code, kExitBadConfig);
}

}  // namespace
}  // namespace loopfleet::worker
