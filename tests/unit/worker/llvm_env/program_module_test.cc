#include "worker/llvm_env/program_module.h"

#include <gtest/gtest.h>
#include <llvm/IR/Module.h>

#include "worker/llvm_env/observations/module_bitcode.h"

namespace loopfleet::worker {
namespace {

constexpr std::string_view kPlain = R"(
define i32 @f(i32 %x) noinline {
  ret i32 %x
}
)";
// The same program with all that normalising takes away.
constexpr std::string_view kAdorned = R"(
source_filename = "somewhere/f.c"
define i32 @f(i32 %x) noinline optnone !dbg !3 {
  ret i32 %x, !dbg !6
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!llvm.ident = !{!5}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "f.c", directory: "/home")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "f", file: !1, line: 1, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !{null})
!5 = !{!"clang"}
!6 = !DILocation(line: 1, scope: !3)
)";

std::string RefusalOf(const Result<ProgramModule>& program) {
  return program ? "" : program.error().message;
}

TEST(ProgramModule, EqualProgramsHaveEqualHashes) {
  const auto plain = ProgramModule::Parse(kPlain);
  const auto adorned = ProgramModule::Parse(kAdorned);
  ASSERT_TRUE(plain) << plain.error().message;
  ASSERT_TRUE(adorned) << adorned.error().message;
  EXPECT_EQ(plain->hash().size(), 64U);
  EXPECT_EQ(plain->hash(), adorned->hash());
  EXPECT_EQ(IrTextOf(plain->module()), IrTextOf(adorned->module()));
  EXPECT_EQ(plain->module().getTargetTriple(), "x86_64-pc-linux-gnu");
  EXPECT_EQ(plain->module().getSourceFileName(), "-");
}

TEST(ProgramModule, NormalisingTwiceChangesNothing) {
  const auto once = ProgramModule::Parse(kAdorned);
  ASSERT_TRUE(once);
  EXPECT_EQ(ModuleHashOf(once->module()), once->hash());
  const auto twice = ProgramModule::Read(BitcodeOf(once->module()));
  ASSERT_TRUE(twice) << twice.error().message;
  EXPECT_EQ(twice->hash(), once->hash());
}

TEST(ProgramModule, WhatIsNoSoundProgramIsRefusedWithAReason) {
  EXPECT_NE(RefusalOf(ProgramModule::Read("")).find("no LLVM bitcode"), std::string::npos);
  EXPECT_NE(RefusalOf(ProgramModule::Read("BC\xc0\xde junk")).find("no LLVM bitcode"),
            std::string::npos);
  const auto broken = ProgramModule::Parse("define i32 @f() {\n ret i32 %x\n}");
  EXPECT_NE(RefusalOf(broken), "");
  const auto unsound = ProgramModule::Parse(
      "define i32 @f(i1 %c) {\n br i1 %c, label %a, label %b\na:\n %x = add i32 1, 1\n br label "
      "%b\n"
      "b:\n ret i32 %x\n}");
  EXPECT_NE(RefusalOf(unsound), "");
}

TEST(ProgramModule, LimitsAreHeld) {
  const auto plain = ProgramModule::Parse(kPlain);
  ASSERT_TRUE(plain);
  const std::string bitcode = BitcodeOf(plain->module());
  EXPECT_EQ(RefusalOf(ProgramModule::Read(bitcode)), "");
  EXPECT_NE(RefusalOf(ProgramModule::Read(bitcode, {.bitcode_bytes = 10})), "");
  EXPECT_NE(RefusalOf(ProgramModule::Read(bitcode, {.instructions = 0})), "");
  EXPECT_NE(RefusalOf(ProgramModule::Read(bitcode, {.functions = 0})), "");
}

}  // namespace
}  // namespace loopfleet::worker
