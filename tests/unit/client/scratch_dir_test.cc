#include "client/scratch_dir.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "common/base/subprocess.h"

namespace loopfleet::client {
namespace {

using namespace std::chrono_literals;

TEST(ScratchDirTest, IsPrivateAndGoesWithItsOwner) {
  std::filesystem::path path;
  {
    auto scratch = ScratchDir::Create();
    ASSERT_TRUE(scratch.has_value()) << scratch.error().message;
    path = scratch->path();
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    std::ofstream(path / "file") << "x";
    std::filesystem::create_directory(path / "below");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ScratchDirTest, LeavesRoomForTheNameOfASocket) {
  const std::string longest = "/tmp/" + std::string(90, 'x');
  ::setenv("TMPDIR", longest.c_str(), 1);
  const auto scratch = ScratchDir::Create();
  ::unsetenv("TMPDIR");
  ASSERT_TRUE(scratch.has_value()) << scratch.error().message;
  EXPECT_LE((scratch->path() / "clients").native().size(), 107u);
}

TEST(ScratchDirTest, GoesWithAnOwnerThatIsKilled) {
  auto pipe = OpenPipe().value();
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto scratch = ScratchDir::Create();
    const std::string path = scratch ? scratch->path().native() : "";
    if (::write(pipe.write.get(), path.c_str(), path.size() + 1) < 0) ::_exit(1);
    while (true) ::pause();
  }
  char text[256] = {};
  ASSERT_GT(::read(pipe.read.get(), text, sizeof text), 1);
  const std::filesystem::path path = text;
  ASSERT_TRUE(std::filesystem::exists(path));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (std::filesystem::exists(path) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace loopfleet::client
