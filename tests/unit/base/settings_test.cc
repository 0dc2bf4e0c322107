#include "common/base/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace loopfleet {
namespace {

// A few options like a daemon's, with an environment and a file for one test.
class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "settings_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    app_.add_option("--listen-clients", listen_);
    app_.add_option("--slots", slots_);
    app_.add_option("--spread", spread_);
    app_.add_option("--labels", labels_)->delimiter(',');
    app_.add_flag("--verbose", verbose_);
    app_.add_option("--config", config_);
  }
  ~SettingsTest() override {
    for (const std::string& name : variables_) ::unsetenv(name.c_str());
    std::filesystem::remove_all(folder_);
  }

  void SetEnvironment(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    variables_.push_back(name);
  }

  std::string File(const std::string& text) {
    const std::string path = folder_ + "/loopfleet.toml";
    std::ofstream(path) << text;
    return path;
  }

  Status Apply(std::vector<std::string> flags, const std::optional<std::string>& file) {
    std::reverse(flags.begin(), flags.end());  // CLI11 takes a vector in reverse order
    app_.parse(flags);
    return ApplySettings(
        app_,
        {.table = "coordinator", .environment_prefix = "LOOPFLEET_COORDINATOR_", .file = file});
  }

  std::string ErrorOf(const std::string& text) {
    const Status status = Apply({}, File(text));
    if (status.has_value()) return "no error";
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
    return status.error().message;
  }

  CLI::App app_;
  std::string listen_ = "default";
  int slots_ = 1;
  double spread_ = 0.5;
  std::vector<std::string> labels_;
  bool verbose_ = false;
  std::string config_;
  std::string folder_;
  std::vector<std::string> variables_;
};

TEST_F(SettingsTest, WithoutAnySourceTheDefaultsStay) {
  ASSERT_TRUE(Apply({}, std::nullopt).has_value());
  EXPECT_EQ(listen_, "default");
  EXPECT_EQ(slots_, 1);
}

TEST_F(SettingsTest, TheFileBeatsTheDefault) {
  const auto status = Apply({}, File("[coordinator]\n"
                                     "listen-clients = 'tcp://file:1'\n"
                                     "slots = 7\nspread = 0.25\nverbose = true\n"
                                     "labels = ['a', 'b']\n"));
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(listen_, "tcp://file:1");
  EXPECT_EQ(slots_, 7);
  EXPECT_EQ(spread_, 0.25);
  EXPECT_TRUE(verbose_);
  EXPECT_EQ(labels_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(SettingsTest, TheEnvironmentBeatsTheFile) {
  SetEnvironment("LOOPFLEET_COORDINATOR_LISTEN_CLIENTS", "tcp://environment:1");
  const auto status =
      Apply({}, File("[coordinator]\nlisten-clients = 'tcp://file:1'\nslots = 7\n"));
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(listen_, "tcp://environment:1");
  EXPECT_EQ(slots_, 7);
}

TEST_F(SettingsTest, AFlagBeatsEverything) {
  SetEnvironment("LOOPFLEET_COORDINATOR_LISTEN_CLIENTS", "tcp://environment:1");
  const auto status = Apply({"--listen-clients", "tcp://flag:1"},
                            File("[coordinator]\nlisten-clients = 'tcp://file:1'\n"));
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(listen_, "tcp://flag:1");
}

TEST_F(SettingsTest, AnEmptyVariableCountsAsNone) {
  SetEnvironment("LOOPFLEET_COORDINATOR_SLOTS", "");
  ASSERT_TRUE(Apply({}, File("[coordinator]\nslots = 7\n")).has_value());
  EXPECT_EQ(slots_, 7);
}

TEST_F(SettingsTest, OtherTablesAreOfNoConcern) {
  ASSERT_TRUE(Apply({}, File("[worker]\nslots = 7\nanything = 1\n")).has_value());
  EXPECT_EQ(slots_, 1);
}

TEST_F(SettingsTest, AnUnknownKeyIsNamedWithItsLineAndTheNearestOne) {
  const std::string message = ErrorOf("[coordinator]\nslots = 2\nlisten-client = 'tcp://x:1'\n");
  EXPECT_NE(message.find("loopfleet.toml:3: unknown key 'listen-client' in [coordinator]; "
                         "nearest: listen-clients"),
            std::string::npos)
      << message;
}

TEST_F(SettingsTest, ABadValueInTheFileIsNamedWithItsLine) {
  const std::string message = ErrorOf("[coordinator]\n\nslots = 'many'\n");
  EXPECT_NE(message.find("loopfleet.toml:3: "), std::string::npos) << message;
  EXPECT_NE(message.find("many"), std::string::npos) << message;
}

TEST_F(SettingsTest, ABadValueInTheEnvironmentNamesTheVariable) {
  SetEnvironment("LOOPFLEET_COORDINATOR_SLOTS", "many");
  const Status status = Apply({}, std::nullopt);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(status.error().message.find("LOOPFLEET_COORDINATOR_SLOTS"), std::string::npos)
      << status.error().message;
}

TEST_F(SettingsTest, ValuesOfTheWrongShapeAreErrors) {
  EXPECT_NE(ErrorOf("[coordinator]\nslots = {a = 1}\n"), "no error");
  EXPECT_NE(ErrorOf("[coordinator]\nlabels = ['a', {b = 1}]\n"), "no error");
  EXPECT_NE(ErrorOf("coordinator = 3\n"), "no error");
}

TEST_F(SettingsTest, BrokenTomlIsNamedWithItsLine) {
  const std::string message = ErrorOf("[coordinator]\nslots = = 2\n");
  EXPECT_NE(message.find("loopfleet.toml:2: "), std::string::npos) << message;
}

TEST_F(SettingsTest, AMissingFileIsAnErrorThatNamesIt) {
  const Status status = Apply({}, folder_ + "/absent.toml");
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("absent.toml"), std::string::npos);
}

TEST_F(SettingsTest, AFileThatIsNotThereHasNoLine) {
  const Status status = Apply({}, folder_ + "/absent.toml");
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(status.error().message.starts_with(folder_ + "/absent.toml: "))
      << status.error().message;
}

TEST_F(SettingsTest, ABadVariableIsNamed) {
  SetEnvironment("LOOPFLEET_COORDINATOR_SLOTS", "abc");
  const Status status = Apply({}, std::nullopt);
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("environment variable LOOPFLEET_COORDINATOR_SLOTS"),
            std::string::npos)
      << status.error().message;
}

TEST_F(SettingsTest, AVariableThatNoOptionHasIsNamedWithTheNearestOne) {
  for (const char* name : {"SLOST", "SLOTS", "XYZ_OF_ANOTHER_PROGRAM", "PORT", "PORT_5570_TCP",
                           "SERVICE_HOST", "METRICS_SERVICE_PORT", "METRICS_PORT"}) {
    SetEnvironment(std::string("LOOPFLEET_COORDINATOR_") + name, "5");
  }
  SetEnvironment("LOOPFLEET_WORKER_SLOST", "5");
  std::vector<std::string> unknown = UnknownVariables(app_, "LOOPFLEET_COORDINATOR_");
  std::ranges::sort(unknown);
  EXPECT_EQ(unknown, (std::vector<std::string>{
                         "'LOOPFLEET_COORDINATOR_SLOST' is no setting; nearest: "
                         "LOOPFLEET_COORDINATOR_SLOTS",
                         "'LOOPFLEET_COORDINATOR_XYZ_OF_ANOTHER_PROGRAM' is no setting"}));
}

TEST_F(SettingsTest, TheAddressOfALocalFleetIsNoMistake) {
  SetEnvironment("LOOPFLEET_WORKER_ADDRESS", "tcp://127.0.0.1:5571");
  EXPECT_TRUE(UnknownVariables(app_, "LOOPFLEET_WORKER_").empty());
}

TEST_F(SettingsTest, UsageNamesTheFlagAndTheHelp) {
  app_.name("daemon");
  const auto said = [&](std::vector<std::string> flags) -> std::string {
    std::reverse(flags.begin(), flags.end());
    try {
      app_.parse(flags);
    } catch (const CLI::ParseError& error) {
      return UsageText(app_, error);
    }
    return "parsed";
  };
  EXPECT_EQ(said({"--slosts", "5"}),
            "daemon: unknown flag '--slosts'; nearest: --slots\nSee `daemon --help`.\n");
  EXPECT_EQ(said({"stray"}), "daemon: unknown argument 'stray'\nSee `daemon --help`.\n");
  const std::string bad = said({"--slots", "abc"});
  EXPECT_NE(bad.find("--slots"), std::string::npos) << bad;
  EXPECT_NE(bad.find("See `daemon --help`."), std::string::npos) << bad;
}

}  // namespace
}  // namespace loopfleet
