#include "worker/emit/emit_command.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "common/looptree/actions/walk.h"
#include "worker/backend/code_hash.h"
#include "worker/gpu/codegen/gpu_backend.h"

namespace loopfleet::worker {
namespace {

// The facts of code for a GPU have the hash that a row of such a worker has.
TEST(EmitCommand, FactsOfAGpuKernelHaveTheHashOfItsRow) {
  const std::array arguments = {"emit",
                                "--format",
                                "facts",
                                "--gpu-arch",
                                "sm_80",
                                "--benchmark",
                                "benchmark://mm-v0/mm64_64_64",
                                "--actions",
                                "swap_down"};
  testing::internal::CaptureStdout();
  const int exit_code = EmitMain(static_cast<int>(arguments.size()), arguments.data());
  const std::string facts = testing::internal::GetCapturedStdout();
  ASSERT_EQ(exit_code, 0);

  const looptree::Action actions[] = {looptree::SwapDown{}};
  const auto replayed =
      looptree::Replay(looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"}, actions);
  ASSERT_TRUE(replayed.has_value()) << replayed.error().message;
  const auto compiler = GpuBackend(GpuArch{80}, GpuAssembler::kDriver).make_compiler();
  const auto kernel = compiler->Compile(replayed->tree, {});
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  EXPECT_NE(facts.find("\"code_hash\":\"" + CodeHash(kernel->object) + '"'), std::string::npos)
      << facts;
}

}  // namespace
}  // namespace loopfleet::worker
