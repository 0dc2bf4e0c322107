#include "worker/cpu/wasm_module.h"

#include <gtest/gtest.h>

#include <string>

#include "common/looptree/datasets/benchmark.h"
#include "worker/cpu/cpu_compiler.h"

namespace loopfleet::worker {
namespace {

std::string ObjectFor(CpuIsa isa) {
  const auto compiler = CpuCompiler::Create({.isa = isa});
  const auto product = looptree::OpenBenchmark(looptree::BenchmarkUri{"benchmark://mm-v0/mm4_5_6"});
  return (*compiler)->Compile(product.value().start).value().object;
}

std::string ProblemOf(const std::string& object) {
  const Result<std::string> module = WasmModuleOf(object, "{}");
  if (module) return "";
  EXPECT_EQ(module.error().kind, ErrorKind::kCorrupt);
  return module.error().message;
}

// tests/javascript runs such modules.
TEST(WasmModule, IsMadeOfAnObject) {
  const std::string module = WasmModuleOf(ObjectFor(CpuIsa::kWasm32), "{\"a\":1}").value();
  EXPECT_EQ(module.substr(0, 8), std::string("\0asm\1\0\0\0", 8));
  for (const char* const part :
       {"\3env\6memory\2", "\20loopfleet_kernel\0", "\17loopfleet.facts{\"a\":1}"}) {
    EXPECT_NE(module.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(module.find("__linear_memory"), std::string::npos);
  EXPECT_EQ(module.find("linking"), std::string::npos);
}

TEST(WasmModule, RefusesWhatIsNoObjectOfAKernel) {
  EXPECT_NE(ProblemOf(""), "");
  EXPECT_NE(ProblemOf("no object"), "");
  EXPECT_NE(ProblemOf(ObjectFor(CpuIsa::kHost)), "");
  const std::string object = ObjectFor(CpuIsa::kWasm32);
  EXPECT_NE(ProblemOf(object.substr(0, object.size() / 2)), "");
  std::string other = object;
  other.replace(other.rfind("loopfleet_kernel"), 16, "loopfleet_kernem");
  EXPECT_NE(ProblemOf(other).find("does not define loopfleet_kernel"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet::worker
