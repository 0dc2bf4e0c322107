#include "worker/cpu/linker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/looptree/datasets/benchmark.h"
#include "tests/unit/worker/cpu/kernel_runner.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/cpu/cpu_compiler.h"

namespace loopfleet::worker {
namespace {

std::string ObjectOf(const std::string& uri) {
  const auto benchmark = looptree::OpenBenchmark(looptree::BenchmarkUri{uri});
  return CpuCompiler::Create().value()->Compile(benchmark.value().start)->object;
}

float AddWith(KernelFunction function, float x, float y) {
  alignas(64) float a[16] = {x};
  alignas(64) float b[16] = {y};
  alignas(64) float c[16] = {};
  alignas(64) float scratch[64] = {};
  float* buffers[] = {a, b, c, scratch};
  function(buffers);
  return c[0];
}

TEST(Linker, KernelsLiveSideBySideAndOutliveTheLinker) {
  const std::string object = ObjectOf("benchmark://loop_tool-cpu-v0/1");
  auto linker = std::make_unique<Linker>();
  auto first = linker->Link(object).value();
  auto second = linker->Link(object).value();
  EXPECT_NE(first->function(), second->function());
  first.reset();
  linker.reset();
  EXPECT_EQ(AddWith(second->function(), 2, 5), 7);
}

TEST(Linker, RefusesWhatIsNoKernel) {
  auto linker = std::make_unique<Linker>();
  const std::string object = ObjectOf("benchmark://loop_tool-cpu-v0/8");
  const std::string damaged[] = {"", "no object file", object.substr(0, object.size() / 2),
                                 object.substr(0, 20)};
  for (const std::string& bytes : damaged) {
    const auto kernel = linker->Link(bytes);
    ASSERT_FALSE(kernel.has_value()) << bytes.size();
    EXPECT_EQ(kernel.error().kind, ErrorKind::kCorrupt);
  }
  EXPECT_TRUE(linker->Link(object).has_value());  // the linker still works
}

TEST(Linker, GivesMemoryBack) {
  const std::string object = ObjectOf("benchmark://loop_tool-cpu-v0/8");
  auto linker = std::make_unique<Linker>();
  // Freed pages are reused, so some kernels get the same address.
  std::vector<KernelFunction> places;
  for (int i = 0; i < 50; ++i) places.push_back(linker->Link(object).value()->function());
  std::sort(places.begin(), places.end());
  EXPECT_LT(std::unique(places.begin(), places.end()) - places.begin(), 50);
}

TEST(Linker, TheSameObjectGivesTheSameCodeAtTheSameAddress) {
  const std::string object = ObjectOf("benchmark://loop_tool-cpu-v0/8");
  Linker linker;
  const CodeImage first =
      linker.LinkAt(object, {.address = 0x7f0000001000, .max_bytes = 1 << 20}).value();
  EXPECT_EQ(linker.LinkAt(object, {.address = 0x7f0000001000, .max_bytes = 1 << 20}).value(),
            first);
  EXPECT_LT(first.entry, first.bytes.size());
}

TEST(Linker, CodeThatIsTooLongIsRefused) {
  const std::string object = ObjectOf("benchmark://loop_tool-cpu-v0/8");
  Linker linker;
  const std::size_t size =
      linker.LinkAt(object, {.address = 4096, .max_bytes = 1 << 20}).value().bytes.size();
  EXPECT_TRUE(linker.LinkAt(object, {.address = 4096, .max_bytes = size}));
  const auto refused = linker.LinkAt(object, {.address = 4096, .max_bytes = size - 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kFull);
}

TEST(CpuBackend, CompilesAndLinks) {
  const Backend backend = CpuBackend();
  EXPECT_EQ(backend.compiler, CpuCompilerFacts());
  const auto benchmark =
      looptree::OpenBenchmark(looptree::BenchmarkUri{"benchmark://loop_tool-cpu-v0/1"});
  const auto kernel = backend.make_compiler()->Compile(benchmark.value().start);
  ASSERT_TRUE(kernel.has_value());
  const auto code =
      backend.make_linker()->LinkAt(kernel->object, {.address = 4096, .max_bytes = 1 << 20});
  ASSERT_TRUE(code.has_value());
  const auto linked = Linker().Link(kernel->object);
  ASSERT_TRUE(linked.has_value());
  EXPECT_EQ(AddWith((*linked)->function(), -3, 4), 1);
}

}  // namespace
}  // namespace loopfleet::worker
