#include "client/cli/completion.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "client/cli/command_line.h"

namespace loopfleet::client {
namespace {

// A grammar like that of `loopfleet`, with names and texts that are hard to quote.
class CompletionTest : public testing::Test {
 protected:
  CompletionTest() {
    app_.add_option("--address", text_, "where: 'quoted', $HOME and `ticks`");
    CLI::App* noun = app_.add_subcommand("worker", "look at workers: all of them");
    noun->add_subcommand("list", "who's up")->add_flag("--json", flag_, "print JSON");
    noun->add_subcommand("show", "one");
    CLI::App* eval = app_.add_subcommand("eval", "measure");
    eval->add_flag("--fresh,-f", flag_, "again");
    eval->add_option("--device", text_, "where")->check(CLI::IsMember({"cpu", "cuda"}));
    eval->add_option("--actions", text_, "what to do")->type_name("A,B,C");
    CLI::App* batch = app_.add_subcommand("batch", "one batch");
    batch->add_option("batch", text_, "which");
    batch->add_flag("--json", flag_, "print JSON");
  }
  ~CompletionTest() override {
    if (!file_.empty()) ::unlink(file_.c_str());
  }

  // What a shell prints when it runs the script and then `commands`.
  std::string Run(Shell shell, const std::string& program, const std::string& commands) {
    char name[] = "/tmp/loopfleet_completion_XXXXXX";
    const int fd = ::mkstemp(name);
    EXPECT_GE(fd, 0);
    ::close(fd);
    file_ = name;
    std::ofstream(file_) << CompletionScript(app_, shell) << "\n" << commands << "\n";
    FILE* pipe = ::popen((program + " " + file_ + " 2>&1").c_str(), "r");
    std::string out;
    char buffer[4096];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      out.append(buffer, n);
    EXPECT_EQ(::pclose(pipe), 0) << out;
    return out;
  }
  static bool Has(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
  }
  static std::set<std::string> Words(const std::string& text) {
    std::istringstream in(text);
    std::set<std::string> words;
    for (std::string word; in >> word;) words.insert(word);
    return words;
  }

  CLI::App app_{"test", "loopfleet"};
  std::string text_;
  bool flag_ = false;
  std::string file_;
};

TEST_F(CompletionTest, BashOffersWhatMayFollow) {
  const auto complete = [&](const std::string& words, int current) {
    return Words(Run(Shell::kBash, "bash",
                     "COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(current) +
                         "; _loopfleet; printf '%s\\n' \"${COMPREPLY[@]}\""));
  };
  EXPECT_EQ(complete("loopfleet ''", 1),
            (std::set<std::string>{"worker", "eval", "batch", "--address", "--help"}));
  EXPECT_EQ(complete("loopfleet wo", 1), (std::set<std::string>{"worker"}));
  EXPECT_EQ(complete("loopfleet worker ''", 2), (std::set<std::string>{"list", "show", "--help"}));
  EXPECT_EQ(complete("loopfleet worker list --j", 3), (std::set<std::string>{"--json"}));
  // A flag and its value before the command are ignored, as are words that are not commands.
  EXPECT_EQ(complete("loopfleet --address tcp://x:1 worker s", 4), (std::set<std::string>{"show"}));
  EXPECT_EQ(complete("loopfleet list --j", 2), (std::set<std::string>{}));
  EXPECT_EQ(complete("loopfleet eval --device ''", 3), (std::set<std::string>{"cpu", "cuda"}));
  EXPECT_EQ(complete("loopfleet eval --device cu", 3), (std::set<std::string>{"cuda"}));
  EXPECT_EQ(complete("loopfleet eval --actions toggle_", 3),
            (std::set<std::string>{"toggle_mode", "toggle_thread"}));
  EXPECT_EQ(complete("loopfleet eval --actions down,toggle_m", 3),
            (std::set<std::string>{"down,toggle_mode"}));
  EXPECT_EQ(complete("loopfleet batch --j", 2), (std::set<std::string>{"--json"}));
  EXPECT_EQ(Words(Run(Shell::kBash, "bash",
                      "loopfleet() { echo BATCH STATE; echo 12 finished; echo 7 running; }\n"
                      "COMP_WORDS=(loopfleet batch ''); COMP_CWORD=2; _loopfleet\n"
                      "printf '%s\\n' \"${COMPREPLY[@]}\"")),
            (std::set<std::string>{"last", "12", "7", "--json", "--help"}));
}

TEST_F(CompletionTest, ZshReadsTheScript) {
  if (!Has("zsh")) GTEST_SKIP() << "zsh is not installed (Debian: zsh)";
  // _describe is a function of zsh; here it prints its arguments.
  const auto complete = [&](const std::string& words, int current) {
    return Run(Shell::kZsh, "zsh -f",
               "_describe() { print -l -- \"${(@P)2}\" }\nwords=(" + words +
                   ")\nCURRENT=" + std::to_string(current) + "\n_loopfleet");
  };

  EXPECT_TRUE(CompletionScript(app_, Shell::kZsh).starts_with("#compdef loopfleet"));
  const std::string at_root = complete("loopfleet ''", 2);
  EXPECT_NE(at_root.find("worker:look at workers: all of them"), std::string::npos) << at_root;
  EXPECT_NE(at_root.find("--address:where: 'quoted', $HOME and `ticks`"), std::string::npos)
      << at_root;
  const std::string at_list = complete("loopfleet worker list ''", 4);
  EXPECT_NE(at_list.find("--json:print JSON"), std::string::npos) << at_list;
  EXPECT_EQ(at_list.find("eval"), std::string::npos) << at_list;
  EXPECT_EQ(complete("loopfleet eval --device ''", 4), "cpu\ncuda\n");
  EXPECT_NE(complete("loopfleet eval --actions ''", 4).find("swap_down\n"), std::string::npos);
  EXPECT_NE(complete("loopfleet batch ''", 3).find("last\n"), std::string::npos);
  EXPECT_EQ(complete("loopfleet batch --", 3).find("last\n"), std::string::npos);
}

TEST_F(CompletionTest, FishOffersWhatMayFollow) {
  if (!Has("fish")) GTEST_SKIP() << "fish is not installed (Debian: fish)";
  const auto complete = [&](const std::string& line) {
    return Run(Shell::kFish, "HOME=/nonexistent fish --no-config", "complete -C '" + line + "'");
  };
  const std::string at_root = complete("loopfleet ");
  EXPECT_NE(at_root.find("worker\tlook at workers: all of them"), std::string::npos) << at_root;
  EXPECT_NE(at_root.find("eval"), std::string::npos) << at_root;
  const std::string below = complete("loopfleet worker ");
  EXPECT_NE(below.find("list\twho's up"), std::string::npos) << below;
  EXPECT_EQ(below.find("eval"), std::string::npos) << below;
  EXPECT_NE(complete("loopfleet worker list --").find("--json"), std::string::npos);
  EXPECT_EQ(complete("loopfleet eval --device "), "cpu\twhere\ncuda\twhere\n");
  EXPECT_EQ(complete("loopfleet eval --actions down,toggle_m"), "down,toggle_mode\twhat to do\n");
  EXPECT_NE(complete("loopfleet batch ").find("last\n"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet::client
