#include "worker/llvm_env/pass_runner.h"

#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
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

TEST_F(PassRunnerTest, VerifiesWhatAPassChanged) {
  const ProgramModule program = Program();
  llvm::BasicBlock& main = program.module().getFunction("main")->getEntryBlock();
  new llvm::UnreachableInst(main.getContext(), main.begin());
  EXPECT_EQ(runner_.Run("function(mem2reg)", program.module()), true) << "it changed the other one";
  new llvm::AllocaInst(llvm::Type::getInt32Ty(main.getContext()), 0, "", main.begin());
  for (const std::string_view text : {"function(mem2reg)", "strip"}) {
    const auto changed = runner_.Run(text, program.module());
    ASSERT_FALSE(changed) << text;
    EXPECT_EQ(changed.error().kind, PassRunner::Problem::Kind::kBrokenModule);
    EXPECT_NE(changed.error().message.find("Terminator found in the middle"), std::string::npos);
  }
}

// What LLVM knows of library functions goes by the triple: there is no strlen on a GPU.
TEST_F(PassRunnerTest, AProgramDoesNotInheritTheTripleOfTheOneBefore) {
  const auto instructions_left = [this](std::string_view triple) {
    const auto program = ProgramModule::Parse("target triple = \"" + std::string(triple) + R"("
@text = constant [4 x i8] c"abc\00"
declare i64 @strlen(ptr)
define i64 @main() {
  %length = call i64 @strlen(ptr @text)
  ret i64 %length
}
)");
    EXPECT_TRUE(runner_.Run("function(instcombine)", program->module()));
    return program->InstructionCount();
  };
  EXPECT_EQ(instructions_left("x86_64-pc-linux-gnu"), 1U);
  EXPECT_EQ(instructions_left("nvptx64-nvidia-cuda"), 2U);
  EXPECT_EQ(instructions_left("x86_64-pc-linux-gnu"), 1U);
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
