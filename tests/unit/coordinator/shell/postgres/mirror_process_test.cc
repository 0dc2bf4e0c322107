#include "coordinator/shell/postgres/mirror_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace loopfleet::coordinator {
namespace {

using std::chrono::seconds;

class MovedClock final : public Clock {
 public:
  Instant Now() const override { return Instant(now_s.load()); }
  WallTime WallNow() const override { return {}; }
  std::atomic<seconds> now_s{seconds(1000)};
};

// A mirror that tells one line and then hangs.
class HangingMirror {
 public:
  explicit HangingMirror(const std::string& line)
      : path_(std::filesystem::temp_directory_path() /
              ("lf-hanging-mirror-" + std::to_string(::getpid()))) {
    std::ofstream(path_) << "#!/bin/sh\necho '" << line << "'\nexec sleep 600\n";
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~HangingMirror() { std::filesystem::remove(path_); }
  HangingMirror(const HangingMirror&) = delete;
  HangingMirror& operator=(const HangingMirror&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// It has told that nothing waits, and whatever waits since, it does not tell.
TEST(MirrorProcess, OneThatHangsIsBehind) {
  const HangingMirror program(R"({"mirrored": 7, "waiting": 0, "behind_seconds": 0})");
  MovedClock clock;
  const MirrorProcess mirror({.program = program.path(), .database = "none", .results = "none"},
                             clock);
  for (int i = 0; i < 1000 && mirror.state().mirrored != 7; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(mirror.state().mirrored, 7U);
  clock.now_s = seconds(1005);
  EXPECT_TRUE(mirror.has_caught_up());
  EXPECT_EQ(mirror.state().behind, seconds(0));
  EXPECT_EQ(mirror.state().trouble, "");
  clock.now_s = seconds(4600);
  EXPECT_FALSE(mirror.has_caught_up());
  EXPECT_EQ(mirror.state().behind, seconds(3600));
  EXPECT_NE(mirror.state().trouble, "");
}

TEST(MirrorProcess, OneThatNeverToldAnythingIsBehindSinceItsStart) {
  const HangingMirror program("no figures");
  MovedClock clock;
  const MirrorProcess mirror({.program = program.path(), .database = "none", .results = "none"},
                             clock);
  EXPECT_EQ(mirror.state().behind, seconds(0));
  clock.now_s = seconds(1060);
  EXPECT_EQ(mirror.state().behind, seconds(60));
}

}  // namespace
}  // namespace loopfleet::coordinator
