#include "worker/llvm_env/observations/observe.h"

#include <gtest/gtest.h>
#include <llvm/IR/Module.h>

#include "common/llvm_passes/programl_graph.h"
#include "worker/llvm_env/program_module.h"
#include "worker/llvm_env/x86_target.h"

namespace loopfleet::worker {
namespace {

TEST(Observe, EveryObservationHasAValueOfItsType) {
  InitializeX86();
  const auto program =
      ProgramModule::Parse("define i32 @f(i32 %x) {\n %y = add i32 %x, 1\n ret i32 %y\n}\n");
  ASSERT_TRUE(program);
  for (const passes::ObservationInfo& info : passes::ObservationTable()) {
    const auto value = Observe(info.observation, program->module());
    ASSERT_TRUE(value) << info.name << ": " << value.error().message;
    EXPECT_EQ(value->index(), static_cast<std::size_t>(info.type)) << info.name;
  }
}

TEST(Observe, ValuesAgreeWithEachOther) {
  const auto program =
      ProgramModule::Parse("define i32 @f(i32 %x) {\n %y = add i32 %x, 1\n ret i32 %y\n}\n");
  ASSERT_TRUE(program);
  const auto value = [&](passes::Observation observation) {
    return Observe(observation, program->module()).value();
  };
  using enum passes::Observation;
  EXPECT_EQ(std::get<std::int64_t>(value(kIrInstructionCount)), 2);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(value(kInstCount))[0], 2);
  const auto shares = std::get<std::vector<float>>(value(kInstCountNorm));
  ASSERT_EQ(shares.size(), 69U);
  EXPECT_EQ(shares[0], 0.5F);
  EXPECT_EQ(std::get<std::string>(value(kModuleHash)), program->hash());
  EXPECT_EQ(std::get<std::string>(value(kIrSha1)).size(), 40U);
  EXPECT_NE(std::get<std::string>(value(kIr)).find("define i32 @f"), std::string::npos);
  const auto again = ProgramModule::Read(std::get<std::string>(value(kBitcode)));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->hash(), program->hash());
  EXPECT_TRUE(passes::DecodePrograml(std::get<std::string>(value(kPrograml))));
}

}  // namespace
}  // namespace loopfleet::worker
