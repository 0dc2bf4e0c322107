#include "worker/llvm_env/programs/program_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "common/base/sha256.h"
#include "worker/llvm_env/program_module.h"

namespace loopfleet::worker {
namespace {

std::uint64_t InstructionsOf(const std::string& uri) {
  const auto program = passes::ParseProgramUri(uri);
  EXPECT_TRUE(program) << program.error().message;
  const auto bitcode = ProgramSource({}).BitcodeOf(*program);
  EXPECT_TRUE(bitcode) << bitcode.error().message;
  const auto module = ProgramModule::Read(*bitcode);
  EXPECT_TRUE(module) << module.error().message;
  return module->InstructionCount();
}

TEST(ProgramSource, GeneratorsMakeTheProgramOfTheirSeed) {
  EXPECT_EQ(InstructionsOf("generator://csmith-v0/5"), 201U);
  EXPECT_GT(InstructionsOf("generator://llvm-stress-v0/1"), 100U);
}

TEST(ProgramSource, SmallProgramsCompile) {
  for (const std::string_view name : passes::SmallProgramNames()) {
    EXPECT_GT(InstructionsOf("benchmark://small-v0/" + std::string(name)), 100U) << name;
  }
}

class ProgramFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("programs." + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "bitcode");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  // INVALID_BENCHMARK's message.
  static std::string RefusalOf(const ProgramSource& source, const passes::ProgramUri& program) {
    const auto bitcode = source.BitcodeOf(program);
    if (bitcode) return "";
    EXPECT_EQ(bitcode.error().code, FailureCode::kInvalidBenchmark);
    return bitcode.error().message;
  }

  std::filesystem::path folder_;
};

TEST_F(ProgramFolderTest, AMissingProgramSaysWhatMakesIt) {
  const std::string no_folder = RefusalOf(ProgramSource({}), passes::DebianProgram{"gzip"});
  EXPECT_NE(no_folder.find("build_debian.py FOLDER --only gzip"), std::string::npos) << no_folder;
  EXPECT_NE(no_folder.find("--llvm-programs FOLDER"), std::string::npos) << no_folder;
  const ProgramSource source({.programs = folder_});
  const std::string no_file = RefusalOf(source, passes::DebianProgram{"gzip"});
  EXPECT_NE(no_file.find("build_debian.py FOLDER --only gzip"), std::string::npos) << no_file;
  const std::string no_bitcode = RefusalOf(source, passes::BitcodeProgram{std::string(64, '0')});
  EXPECT_NE(no_bitcode.find("loopfleet llvm add FILE"), std::string::npos) << no_bitcode;
}

TEST_F(ProgramFolderTest, OnlyTheBytesOfTheHashAreUsed) {
  const ProgramSource source({.programs = folder_});
  const std::string bytes = "BC\xC0\xDE, and so on";
  const std::string hash = Sha256Of(bytes);
  Write("bitcode/" + hash + ".bc", bytes);
  EXPECT_EQ(source.BitcodeOf(passes::BitcodeProgram{hash}).value(), bytes);
  Write("bitcode/" + hash + ".bc", bytes + "!");
  const std::string other = RefusalOf(source, passes::BitcodeProgram{hash});
  EXPECT_NE(other.find(Sha256Of(bytes + "!")), std::string::npos) << other;
  Write("gzip.bc", bytes);  // not the program of the table
  EXPECT_NE(RefusalOf(source, passes::DebianProgram{"gzip"}).find(hash), std::string::npos);
}

TEST_F(ProgramFolderTest, WhatIsTooLargeIsNotRead) {
  const std::string hash(64, '0');
  Write("bitcode/" + hash + ".bc", "");
  std::filesystem::resize_file(folder_ / passes::BitcodeFile(hash), passes::kMostBitcodeBytes + 1);
  const std::string refusal =
      RefusalOf(ProgramSource({.programs = folder_}), passes::BitcodeProgram{hash});
  EXPECT_NE(refusal.find("16777217 bytes; at most 16777216"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace loopfleet::worker
