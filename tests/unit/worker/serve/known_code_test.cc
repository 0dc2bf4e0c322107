#include "worker/serve/known_code.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace loopfleet::worker {
namespace {

TEST(KnownCodeTest, IsKeptOverRuns) {
  const std::filesystem::path folder =
      testing::TempDir() + "/known_code_" + std::to_string(::getpid());
  const std::string path = folder / "deep" / "verified";
  {
    KnownCode known(path);
    EXPECT_FALSE(known.Has("hash", "key"));
    known.Add("hash", "key");
    known.Add("hash", "key");
    EXPECT_TRUE(known.Has("hash", "key"));
    EXPECT_FALSE(known.Has("hash", "other"));
  }
  KnownCode again(path);
  EXPECT_TRUE(again.Has("hash", "key"));
  std::ifstream file(path);
  std::string line;
  EXPECT_TRUE(std::getline(file, line));
  EXPECT_EQ(line, "hash key");
  EXPECT_FALSE(std::getline(file, line));
  std::filesystem::remove_all(folder);
}

TEST(KnownCodeTest, AFileThatCannotBeWrittenIsNoHindrance) {
  KnownCode known("/proc/nowhere/verified");
  known.Add("hash", "key");
  EXPECT_TRUE(known.Has("hash", "key"));
}

}  // namespace
}  // namespace loopfleet::worker
