#include "common/llvm_passes/program_uri.h"

#include <gtest/gtest.h>

#include "common/llvm_passes/debian_programs.h"

namespace loopfleet::passes {
namespace {

std::string RefusalOf(const std::string& uri) {
  const auto program = ParseProgramUri(uri);
  return program ? "" : program.error().message;
}

TEST(ProgramUri, EveryKindIsReadBack) {
  const std::string hash(64, 'a');
  for (const std::string& uri :
       {std::string("generator://csmith-v0/0"), std::string("generator://csmith-v0/4294967295"),
        std::string("generator://llvm-stress-v0/7"), std::string("benchmark://small-v0/qsort"),
        std::string("benchmark://debian-v0/nettle"), "bitcode://sha256/" + hash}) {
    const auto program = ParseProgramUri(uri);
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_EQ(ToString(*program), uri);
  }
  EXPECT_EQ(ParseProgramUri("generator://csmith-v0/7").value(), ProgramUri(CsmithProgram{7}));
}

TEST(ProgramUri, ASeedHasOneSpelling) {
  for (const char* seed : {"", "-1", "+1", "01", "4294967296", "1x", " 1", "1.0"}) {
    EXPECT_NE(RefusalOf(std::string("generator://csmith-v0/") + seed), "") << seed;
  }
}

TEST(ProgramUri, MistakesNameTheNearest) {
  EXPECT_EQ(RefusalOf("benchmark://small-v0/qsrt"),
            "small-v0 has no program 'qsrt'; nearest: qsort");
  EXPECT_NE(RefusalOf("generator://csmith-v1/3").find("nearest: generator://csmith-v0"),
            std::string::npos);
  EXPECT_NE(RefusalOf("bitcode://sha256/ABC"), "");
  EXPECT_NE(RefusalOf("benchmark://debian-v0/../x"), "");
  EXPECT_EQ(RefusalOf("benchmark://debian-v0/zlibb"),
            "debian-v0 has no program 'zlibb'; nearest: zlib");
  EXPECT_NE(RefusalOf(std::string(300, 'x')), "");
  EXPECT_NE(RefusalOf(""), "");
}

// A new version of a program is another program: stored results of the old one are not its own.
TEST(ProgramUri, TheKeyOfAPinnedProgramHoldsItsHash) {
  ASSERT_GE(DebianPins().size(), 12U);
  for (const DebianPin& pin : DebianPins()) {
    const std::string uri = "benchmark://debian-v0/" + std::string(pin.name);
    EXPECT_EQ(pin.sha256.size(), 64U) << pin.name;
    EXPECT_EQ(ProgramKey(ParseProgramUri(uri).value()), uri + " " + std::string(pin.sha256));
  }
  EXPECT_EQ(ProgramKey(CsmithProgram{7}), "generator://csmith-v0/7");
}

TEST(ProgramUri, DatasetsThatCannotBeHadSayHowToBringThem) {
  for (const char* uri : {"benchmark://cbench-v1/qsort", "benchmark://npb-v0",
                          "benchmark://poj104-v1/1/2", "benchmark://tensorflow-v0/1"}) {
    EXPECT_NE(RefusalOf(uri).find("bring its .bc files: loopfleet llvm add"), std::string::npos)
        << uri;
  }
  EXPECT_NE(RefusalOf("file:///etc/passwd").find("loopfleet llvm add"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet::passes
