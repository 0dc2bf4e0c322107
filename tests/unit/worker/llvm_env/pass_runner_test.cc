#include "worker/llvm_env/pass_runner.h"

#include <gtest/gtest.h>
#include <llvm/IR/Module.h>

#include "common/llvm_passes/pass_action.h"
#include "worker/llvm_env/observations/module_bitcode.h"
#include "worker/llvm_env/program_module.h"
#include "worker/llvm_env/x86_target.h"

namespace loopfleet::worker {
namespace {

constexpr std::string_view kProgram = R"(
define internal i32 @twice(i32 %x) {
  %p = alloca i32
  store i32 %x, ptr %p
  %y = load i32, ptr %p
  %z = add i32 %y, %y
  ret i32 %z
}
define i32 @main(i32 %x) {
  %y = call i32 @twice(i32 %x)
  ret i32 %y
}
)";

class PassRunnerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { InitializeX86(); }
  static ProgramModule Program() { return ProgramModule::Parse(kProgram).value(); }
  PassRunner runner_;
};

TEST_F(PassRunnerTest, SaysWhetherThePassChangedTheModule) {
  const ProgramModule program = Program();
  EXPECT_EQ(runner_.Run("function(mem2reg)", program.module()), true);
  EXPECT_EQ(program.InstructionCount(), 4U);
  EXPECT_EQ(runner_.Run("function(mem2reg)", program.module()), false);
  EXPECT_EQ(runner_.Run("no-op-module", program.module()), false);
}

TEST_F(PassRunnerTest, EveryActionCanBeRun) {
  for (const passes::ActionSpace space :
       {passes::ActionSpace::kAll, passes::ActionSpace::kPipelines}) {
    for (const passes::PassAction& action : passes::ActionsOf(space)) {
      const ProgramModule program = Program();
      const auto changed = runner_.Run(action.text, program.module());
      EXPECT_TRUE(changed) << action.text << ": " << changed.error().message;
    }
  }
}

TEST_F(PassRunnerTest, ATextThatLlvmDoesNotKnowRunsNothing) {
  const ProgramModule program = Program();
  const auto changed = runner_.Run("function(simplifycfg<bonus>)", program.module());
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().kind, PassRunner::Problem::Kind::kUnknownPass);
  EXPECT_EQ(ModuleHashOf(program.module()), program.hash());
}

TEST_F(PassRunnerTest, SizeAttributesMakeASmallerProgramPossible) {
  const ProgramModule program = Program();
  AddSizeAttributes(program.module());
  const std::string text = IrTextOf(program.module());
  EXPECT_NE(text.find("minsize"), std::string::npos);
  EXPECT_NE(text.find("optsize"), std::string::npos);
  EXPECT_EQ(runner_.Run("default<Oz>", program.module()), true);
}

}  // namespace
}  // namespace loopfleet::worker
