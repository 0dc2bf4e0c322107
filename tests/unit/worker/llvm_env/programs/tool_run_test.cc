#include "worker/llvm_env/programs/tool_run.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

ErrorKind KindOf(const Result<std::string>& output) {
  EXPECT_FALSE(output);
  return output ? ErrorKind::kExists : output.error().kind;
}

TEST(ToolRun, BytesGoInAndOut) {
  const std::string bytes("a\0b\n", 4);
  EXPECT_EQ(RunTool({"cat"}, bytes, {}).value(), bytes);
}

TEST(ToolRun, FailuresAreTyped) {
  EXPECT_EQ(KindOf(RunTool({"no-such-tool"}, "", {})), ErrorKind::kNotFound);
  const auto failed = RunTool({"sh", "-c", "echo why >&2; exit 3"}, "", {});
  EXPECT_EQ(KindOf(failed), ErrorKind::kInvalid);
  EXPECT_NE(failed.error().message.find("exited with code 3: why"), std::string::npos);
  EXPECT_EQ(KindOf(RunTool({"sleep", "60"}, "", {.wall_time = std::chrono::seconds(1)})),
            ErrorKind::kTimeout);
  EXPECT_EQ(KindOf(RunTool({"sh", "-c", "head -c 100000 /dev/zero"}, "", {.output_bytes = 1000})),
            ErrorKind::kInvalid);
}

TEST(ToolRun, ToolsLeaveNoFilesWhereTheWorkerRuns) {
  EXPECT_EQ(RunTool({"pwd"}, "", {}).value(), "/proc\n");
  EXPECT_EQ(KindOf(RunTool({"touch", "platform.info"}, "", {})), ErrorKind::kInvalid);
}

}  // namespace
}  // namespace loopfleet::worker
