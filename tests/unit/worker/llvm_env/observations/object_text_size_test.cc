#include "worker/llvm_env/observations/object_text_size.h"

#include <gtest/gtest.h>
#include <llvm/IR/Module.h>

#include "worker/llvm_env/program_module.h"

namespace loopfleet::worker {
namespace {

TEST(ObjectTextSize, CountsCodeAndNoConstants) {
  InitializeX86();
  // xor %eax, %eax; ret
  const auto program = ProgramModule::Parse(
      "@table = constant [1000 x i8] zeroinitializer\n"
      "define i32 @zero() {\n ret i32 0\n}\n");
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(ObjectTextSizeOf(program->module(), CodeLevel::kDefault).value(), 3);
  EXPECT_EQ(ObjectTextSizeOf(program->module(), CodeLevel::kNone).value(), 3);
  EXPECT_EQ(program->InstructionCount(), 1U);
}

TEST(ObjectTextSize, LessIsLessAtTheHigherLevel) {
  InitializeX86();
  const auto program = ProgramModule::Parse(
      "define i32 @f(i32 %a, i32 %b) {\n %x = add i32 %a, %b\n %y = mul i32 %x, %x\n"
      " %z = sub i32 %y, %a\n ret i32 %z\n}\n");
  ASSERT_TRUE(program);
  const auto none = ObjectTextSizeOf(program->module(), CodeLevel::kNone);
  const auto standard = ObjectTextSizeOf(program->module(), CodeLevel::kDefault);
  ASSERT_TRUE(none && standard);
  EXPECT_LT(*standard, *none);
  EXPECT_GT(*standard, 0);
}

}  // namespace
}  // namespace loopfleet::worker
