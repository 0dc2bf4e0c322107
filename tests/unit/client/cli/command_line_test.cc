#include "client/cli/command_line.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/exit_code.h"
#include "client/cli/job_options.h"

namespace loopfleet::client {
namespace {

// `tool fly`, which talks to a coordinator, and `tool walk [STEPS] [--slowly]`, which does not.
class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    CLI::App& noun = line_.AddNoun({.name = "tool", .description = "A noun", .examples = {}});
    line_.AddCommand(noun, {.name = "fly", .description = "A verb", .examples = {}},
                     CommandLine::Talks::kToCoordinator, [this](const CommandRun& run) {
                       seen_ = run;
                       return 42;
                     });
    CLI::App& walk =
        line_.AddCommand(noun, {.name = "walk", .description = "A verb", .examples = {}},
                         CommandLine::Talks::kOffline, [](const CommandRun&) { return 43; });
    walk.add_flag("--slowly");
    walk.add_option("--length");
    CLI::App& local =
        line_.AddCommand(line_.root(), {.name = "local", .description = "x", .examples = {}},
                         CommandLine::Talks::kOffline, [this](const CommandRun& run) {
                           seen_ = run;
                           return 44;
                         });
    local.add_option("--workers");
    for (const char* name : {"LOOPFLEET_ADDRESS", "LOOPFLEET_TIMEOUT", "LOOPFLEET_CONFIG"}) {
      ::unsetenv(name);
    }
  }

  int Execute(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "loopfleet");
    return line_.Execute(static_cast<int>(arguments.size()), arguments.data());
  }

  // What Execute prints to standard error.
  std::string Complaint(std::vector<const char*> arguments) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Execute(std::move(arguments)), kExitUsage);
    return ::testing::internal::GetCapturedStderr();
  }

  CommandLine line_;
  std::optional<CommandRun> seen_;
};

TEST_F(CommandLineTest, RunsTheCommandThatWasNamed) {
  EXPECT_EQ(Execute({"tool", "fly"}), 42);
  EXPECT_EQ(seen_->settings.address, "tcp://127.0.0.1:5570");
  EXPECT_FALSE(seen_->settings.is_address_named);
}

TEST_F(CommandLineTest, TakesSettingsBeforeAndBehindTheCommand) {
  EXPECT_EQ(Execute({"--address", "tcp://a:1", "tool", "fly", "--timeout", "2.5"}), 42);
  EXPECT_EQ(seen_->settings.address, "tcp://a:1");
  EXPECT_EQ(seen_->settings.timeout_s, 2.5);
}

TEST_F(CommandLineTest, ATimeoutIsAbove0AndSaidInPlainNumbers) {
  for (const char* wrong : {"-1", "0", "nan", "soon"}) {
    const std::string text = Complaint({"tool", "fly", "--timeout", wrong});
    EXPECT_TRUE(text.starts_with(
        std::string("loopfleet: --timeout: must be a number above 0, not '") + wrong + "'\n"))
        << text;
  }
}

TEST_F(CommandLineTest, ATagIsJson) {
  CLI::App& measure =
      line_.AddCommand(line_.root(), {.name = "measure", .description = "x", .examples = {}},
                       CommandLine::Talks::kOffline, [](const CommandRun&) { return 45; });
  nlohmann::ordered_json fields;
  AddJobOptions(measure, fields);
  for (const char* tag : {R"({"a":1})", R"("text")", "[1,null]", "7"}) {
    EXPECT_EQ(Execute({"measure", "--tag", tag}), 45);
    EXPECT_EQ(fields["tag"].dump(), tag);
  }
  EXPECT_EQ(Complaint({"measure", "--tag", R"({"a": 1)"}),
            "loopfleet: --tag: not JSON: the line ends too early, at column 8, behind the key 'a'; "
            "a text needs quotes: '\"text\"'\nSee `loopfleet measure --help`.\n");
  const std::string bare = Complaint({"measure", "--tag", "notjson"});
  EXPECT_NE(bare.find("a text needs quotes: '\"text\"'"), std::string::npos) << bare;
}

TEST_F(CommandLineTest, PutsTheEnvironmentAboveTheFile) {
  const auto file =
      std::filesystem::temp_directory_path() / ("command_line_" + std::to_string(::getpid()));
  std::ofstream(file) << "[client]\naddress = \"tcp://file:1\"\ntimeout = 7\n";
  ::setenv("LOOPFLEET_ADDRESS", "tcp://environment:1", 1);
  EXPECT_EQ(Execute({"tool", "fly", "--config", file.c_str()}), 42);
  EXPECT_EQ(seen_->settings.address, "tcp://environment:1");
  EXPECT_TRUE(seen_->settings.is_address_named);
  EXPECT_EQ(seen_->settings.timeout_s, 7) << "which only the file gives";
  std::filesystem::remove(file);
}

TEST_F(CommandLineTest, PutsFlagsAboveTheEnvironment) {
  ::setenv("LOOPFLEET_ADDRESS", "tcp://environment:1", 1);
  EXPECT_EQ(Execute({"tool", "fly", "--address", "tcp://flag:1"}), 42);
  EXPECT_EQ(seen_->settings.address, "tcp://flag:1");
}

TEST_F(CommandLineTest, RefusesABadValueInTheEnvironment) {
  ::setenv("LOOPFLEET_TIMEOUT", "soon", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Execute({"tool", "fly"}), kExitBadConfig);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("LOOPFLEET_TIMEOUT"), std::string::npos);
}

TEST_F(CommandLineTest, RefusesABadFileWithItsOwnCode) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Execute({"tool", "fly", "--config", "/no/such/file"}), kExitBadConfig);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("/no/such/file"), std::string::npos);
}

TEST_F(CommandLineTest, NamesTheNearestCommandVerbAndFlag) {
  EXPECT_NE(Complaint({"tol"}).find("unknown command 'tol'; nearest: tool"), std::string::npos);
  EXPECT_NE(Complaint({"tool", "wakl"}).find("unknown command 'wakl'; nearest: walk"),
            std::string::npos);
  EXPECT_NE(
      Complaint({"tool", "walk", "--slwoly"}).find("unknown flag '--slwoly'; nearest: --slowly"),
      std::string::npos);
}

TEST_F(CommandLineTest, KeepsWhatStandsBehindTheDashesApart) {
  EXPECT_EQ(Execute({"local", "--workers", "2", "--", "tool", "--workers", "--", "x"}), 44);
  EXPECT_EQ(seen_->after_dashes, (std::vector<std::string>{"tool", "--workers", "--", "x"}));
  EXPECT_NE(Complaint({"tool", "walk", "--", "x"}).find("takes no command"), std::string::npos);
}

TEST_F(CommandLineTest, WantsACommand) {
  EXPECT_FALSE(Complaint({}).empty());
  EXPECT_FALSE(Complaint({"tool"}).empty());
}

TEST_F(CommandLineTest, HelpIsNoError) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Execute({"tool", "--help"}), kExitOk);
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("walk"), std::string::npos);
}

TEST_F(CommandLineTest, HelpIsACommandToo) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Execute({"help", "tool", "walk"}), kExitOk);
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("--length"), std::string::npos);
}

TEST_F(CommandLineTest, NothingIsAnsweredWithTheHelp) {
  EXPECT_NE(Complaint({}).find("Usage: loopfleet"), std::string::npos);
}

TEST_F(CommandLineTest, AnUnknownWordBesideHelpIsNamed) {
  EXPECT_NE(Complaint({"--help", "toll"}).find("unknown command 'toll'; nearest: tool"),
            std::string::npos);
}

}  // namespace
}  // namespace loopfleet::client
