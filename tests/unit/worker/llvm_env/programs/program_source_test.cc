#include "worker/llvm_env/programs/program_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

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

TEST(ProgramSource, WhatThisWorkerDoesNotHaveIsAnInvalidBenchmark) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("debian-v0." + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "gzip.bc") << "BC";
  const ProgramSource source({.debian_programs = folder});
  EXPECT_EQ(source.BitcodeOf(passes::DebianProgram{"gzip"}).value(), "BC");
  const auto missing = source.BitcodeOf(passes::DebianProgram{"bzip2"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, FailureCode::kInvalidBenchmark);
  EXPECT_NE(missing.error().message.find("benchmark://debian-v0/bzip2"), std::string::npos);
  EXPECT_FALSE(ProgramSource({}).BitcodeOf(passes::DebianProgram{"gzip"}));
  EXPECT_FALSE(source.BitcodeOf(passes::UploadedProgram{std::string(64, '0')}));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace loopfleet::worker
