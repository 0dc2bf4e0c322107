#include "coordinator/code_maker.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace loopfleet::coordinator {
namespace {

using namespace std::chrono_literals;

storage::StoredJob Asked() {
  return {.spec = {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm8_8_8"},
                   .actions = {looptree::Down{}, looptree::Split{4}}}};
}

storage::StoredJob MeasuredOn(DeviceKind device, const std::string& isa) {
  storage::StoredJob job = Asked();
  Outcome& outcome = job.outcome.emplace();
  outcome.evaluation.conditions.emplace().hardware.device = device;
  outcome.evaluation.conditions->hardware.isa = isa;
  outcome.evaluation.code_hash = "c0de";
  return job;
}

// In place of loopfleet-worker: a script, which sees the arguments and the job line as it does.
class CodeMakerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "lf-test-XXXXXX").native();
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    scratch_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  CodeMaker::Options Doing(const std::string& script) {
    const std::filesystem::path program = scratch_ / "worker";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(program.c_str(), 0700);
    return {.program = program, .limit = 120s};
  }
  std::string ContentOf(const char* name) {
    std::ifstream file(scratch_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string In(const char* name) { return (scratch_ / name).native(); }

  std::filesystem::path scratch_;
};

TEST_F(CodeMakerTest, GivesWhatTheProgramMakes) {
  CodeMaker maker(Doing("echo \"$@\"; cat; echo 'first' >&2; echo 'the very code' >&2"));
  const auto code = maker.Make(MeasuredOn(DeviceKind::kCpu, "avx2"), "asm");
  ASSERT_TRUE(code.has_value()) << code.error().message;
  EXPECT_EQ((*code)->text,
            "emit --sealed --format asm --isa avx2 --code-hash c0de\n"
            R"({"benchmark":"benchmark://mm-v0/mm8_8_8","actions":["down","split_4"],"threads":1})"
            "\n");
  EXPECT_EQ((*code)->note, "the very code");
  EXPECT_TRUE((*code)->is_whole);
}

TEST_F(CodeMakerTest, AsksForWhatTheDeviceTakes) {
  CodeMaker maker(Doing("echo \"$@\""));
  const auto text = [&](const storage::StoredJob& job, const char* format) {
    const auto code = maker.Make(job, format);
    return code ? (*code)->text : code.error().message;
  };
  EXPECT_EQ(text(Asked(), "asm"), "emit --sealed --format asm\n");
  EXPECT_EQ(text(MeasuredOn(DeviceKind::kCpu, "avx2"), "c"), "emit --sealed --format c\n");
  EXPECT_EQ(text(MeasuredOn(DeviceKind::kCuda, "sm_90"), "ptx"),
            "emit --sealed --format ptx --gpu-arch sm_90\n");
  EXPECT_EQ(CodeMaker::FormatsOf(MeasuredOn(DeviceKind::kCuda, "sm_90")),
            (std::vector<std::string_view>{"c", "llvm-ir", "ptx"}));
  EXPECT_EQ(CodeMaker::FormatsOf(Asked()), (std::vector<std::string_view>{"c", "llvm-ir", "asm"}));
}

TEST_F(CodeMakerTest, MakesItOnce) {
  CodeMaker maker(Doing("echo made >> '" + In("runs") + "'; echo \"$4\""));
  const auto first = maker.Make(Asked(), "c");
  const auto again = maker.Make(Asked(), "c");
  ASSERT_TRUE(first.has_value() && again.has_value());
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(ContentOf("runs"), "made\n");
  const auto other = maker.Make(Asked(), "asm");
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(ContentOf("runs"), "made\nmade\n");
}

TEST_F(CodeMakerTest, ForgetsTheOldest) {
  auto options = Doing("echo \"$4\" >> '" + In("runs") + "'");
  options.remembered = 1;
  CodeMaker maker(options);
  for (const char* format : {"c", "asm", "c"}) ASSERT_TRUE(maker.Make(Asked(), format).has_value());
  EXPECT_EQ(ContentOf("runs"), "c\nasm\nc\n");
}

TEST_F(CodeMakerTest, SaysWhyThereIsNone) {
  CodeMaker maker(Doing("echo 'loopfleet-worker emit: LIMIT_UNROLL: too many' >&2; exit 1"));
  const auto code = maker.Make(Asked(), "c");
  ASSERT_FALSE(code.has_value());
  EXPECT_EQ(code.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(code.error().message, "LIMIT_UNROLL: too many");
  // Nothing of that is remembered.
  CodeMaker crashed(Doing("kill -SEGV $$"));
  const auto none = crashed.Make(Asked(), "c");
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("signal 11"), std::string::npos) << none.error().message;
}

TEST_F(CodeMakerTest, CutsWhatIsTooLong) {
  auto options = Doing("while echo 0123456789; do :; done");
  options.max_bytes = 1000;
  CodeMaker maker(options);
  const auto code = maker.Make(Asked(), "c");  // which ends, though the program does not
  ASSERT_TRUE(code.has_value()) << code.error().message;
  EXPECT_FALSE((*code)->is_whole);
  EXPECT_LE((*code)->text.size(), 1000U);
  EXPECT_TRUE((*code)->text.ends_with("0123456789\n"));
}

TEST_F(CodeMakerTest, OfMuchTalkTheEndIsKept) {
  CodeMaker maker(Doing("yes 0123456789 | head -n 100000 >&2; echo code; echo 'the end' >&2"));
  const auto code = maker.Make(Asked(), "c");
  ASSERT_TRUE(code.has_value()) << code.error().message;
  EXPECT_EQ((*code)->text, "code\n");
  EXPECT_EQ((*code)->note, "the end");
}

TEST_F(CodeMakerTest, DoesNotWaitForEver) {
  auto options = Doing("exec sleep 1000");
  options.limit = 10ms;
  CodeMaker maker(options);
  const auto code = maker.Make(Asked(), "c");
  ASSERT_FALSE(code.has_value());
  EXPECT_EQ(code.error().kind, ErrorKind::kTimeout);
}

TEST_F(CodeMakerTest, NeedsTheProgram) {
  CodeMaker maker({.program = "/nowhere/loopfleet-worker"});
  const auto code = maker.Make(Asked(), "c");
  ASSERT_FALSE(code.has_value());
  EXPECT_EQ(code.error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace loopfleet::coordinator
