// Compares AArch64 kernels with the interpreter. The kernels come from the same lowering and from
// portable C, and run under qemu-user. Shows that the lowering does not depend on x86.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "common/job/loop_schedule.h"
#include "tests/support/paths.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/portable_c/c_library.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/portable_c/c_source.h"

namespace loopfleet::worker {
namespace {

using looptree::LoopTree;
using looptree::Tensor;

constexpr const char* kCrossCompiler = "aarch64-linux-gnu-gcc";
constexpr const char* kEmulator = "qemu-aarch64-static -L /usr/aarch64-linux-gnu";
// LOOPFLEET_AARCH64_TREES asks for more: each takes 0.2 s.
std::size_t TreeCount() {
  const char* wanted = std::getenv("LOOPFLEET_AARCH64_TREES");
  return wanted == nullptr ? 40 : std::stoul(wanted);
}

class AArch64 : public ::testing::Test {
 protected:
  struct Case {
    LoopTree tree;
    std::string line;
    std::uint64_t input_seed = 1;
    std::vector<BufferSpec> buffers;
  };

  void SetUp() override {
    if (!Shell(fmt::format("command -v {} && command -v qemu-aarch64-static", kCrossCompiler))) {
      GTEST_SKIP() << "NOT TESTED: AArch64 needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and"
                      " qemu-user-static (deploy/dependencies.sh --tests)";
    }
    const Status built =
        Shell(fmt::format("{} {} -O1 -o {} {} -ldl", kCrossCompiler, kStrictC, folder_ / "driver",
                          LOOPFLEET_SOURCE_DIR "/tests/unit/worker/cpu/aarch64_driver.c"));
    ASSERT_TRUE(built.has_value()) << built.error().message;
    FuzzCases fuzz(0xaa64);
    while (cases_.size() < TreeCount()) {
      const FuzzCase one = fuzz.Next();
      const auto replayed = ReplayJob(one.job);
      ASSERT_TRUE(replayed.has_value());
      ASSERT_TRUE(PlanKernel(replayed->tree));
      cases_.push_back({replayed->tree, ToLine(one), one.input_seed, {}});
    }
  }

  // Links `built`, an object or a C file, into the library of the case.
  void Link(std::size_t index, const std::string& built) {
    const Status linked = Shell(fmt::format("{} {} -O1 -fPIC -shared -o {} {} -lm", kCrossCompiler,
                                            kStrictC, LibraryOf(index), built));
    ASSERT_TRUE(linked.has_value()) << linked.error().message << cases_[index].line;
  }

  void ExpectRight() {
    std::string list;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      std::string bytes;
      for (const Tensor& tensor : SmallIntegers(cases_[i].tree.program(), cases_[i].input_seed)) {
        bytes.append(reinterpret_cast<const char*>(tensor.data()), tensor.size() * sizeof(float));
      }
      WriteFile(InputOf(i), bytes);
      list += fmt::format("{} {} {} {}", LibraryOf(i), InputOf(i), OutputOf(i),
                          cases_[i].buffers.size());
      for (const BufferSpec& buffer : cases_[i].buffers) {
        list += fmt::format(" {} {}", static_cast<int>(buffer.role), buffer.element_count);
      }
      list += "\n";
    }
    WriteFile(folder_ / "cases", list);
    const Status run =
        Shell(fmt::format("{} {} {}", kEmulator, folder_ / "driver", folder_ / "cases"));
    ASSERT_TRUE(run.has_value()) << run.error().message;
    CachedReference references;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const auto& [inputs, reference] =
          references.Of(cases_[i].tree.program(), cases_[i].input_seed);
      const std::vector<Tensor> outputs = ReadOutputs(i);
      const std::vector<Tensor> interpreted = looptree::Interpret(cases_[i].tree, inputs);
      ASSERT_EQ(Difference(outputs, reference), "") << cases_[i].line;
      ASSERT_EQ(Difference(outputs, interpreted, reference), "") << cases_[i].line;
    }
  }

  std::vector<Tensor> ReadOutputs(std::size_t index) const {
    const std::string bytes = ReadFile(OutputOf(index));
    std::vector<Tensor> outputs;
    std::size_t at = 0;
    for (const BufferSpec& buffer : cases_[index].buffers) {
      if (buffer.role != BufferSpec::Role::kOutput) continue;
      Tensor tensor(buffer.element_count);
      const std::size_t size = tensor.size() * sizeof(float);
      if (at + size > bytes.size()) return {};
      std::memcpy(tensor.data(), bytes.data() + at, size);
      at += size;
      outputs.push_back(std::move(tensor));
    }
    return outputs;
  }

  std::string LibraryOf(std::size_t i) const { return folder_ / fmt::format("k{}.so", i); }
  std::string InputOf(std::size_t i) const { return folder_ / fmt::format("k{}.in", i); }
  std::string OutputOf(std::size_t i) const { return folder_ / fmt::format("k{}.out", i); }

  TemporaryFolder folder_;
  std::vector<Case> cases_;
};

TEST_F(AArch64, ObjectsEqualTheInterpreter) {
  const auto compiler = CpuCompiler::Create({.isa = CpuIsa::kAArch64});
  ASSERT_TRUE(compiler.has_value()) << compiler.error().message;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const auto kernel = (*compiler)->Compile(cases_[i].tree);
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message << cases_[i].line;
    cases_[i].buffers = kernel->buffers;
    WriteFile(folder_ / "kernel.o", kernel->object);
    ASSERT_NO_FATAL_FAILURE(Link(i, folder_ / "kernel.o"));
  }
  ExpectRight();
}

TEST_F(AArch64, PortableCEqualsTheInterpreter) {
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    cases_[i].buffers = BufferSpecsOf(PlanKernel(cases_[i].tree).value());
    WriteFile(folder_ / "kernel.c", CSourceOf(cases_[i].tree).value().text);
    ASSERT_NO_FATAL_FAILURE(Link(i, folder_ / "kernel.c"));
  }
  ExpectRight();
}

}  // namespace
}  // namespace loopfleet::worker
