#include "worker/llvm_env/huge_code.h"

#include <gtest/gtest.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/TargetSelect.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "worker/llvm_env/observations/module_bitcode.h"
#include "worker/llvm_env/pass_runner.h"
#include "worker/llvm_env/program_module.h"
#include "worker/llvm_env/x86_target.h"

namespace loopfleet::worker {
namespace {

// Of this process, in memory that belongs to no file.
std::uint64_t BytesOfCodeWithoutFile() {
  std::uint64_t bytes = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, inode = 0;
    char rights[5] = {};
    std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &begin, &end, rights, &inode);
    const bool is_special = line.find('[') != std::string::npos;  // such as [vdso]
    if (rights[2] == 'x' && inode == 0 && !is_special) bytes += end - begin;
  }
  return bytes;
}

std::string Optimised() {
  auto program = ProgramModule::Parse(R"(
define i32 @f(i32 %n) {
  %p = alloca i32
  store i32 %n, ptr %p
  %x = load i32, ptr %p
  %y = mul i32 %x, 8
  %z = call i32 @g(i32 %y)
  ret i32 %z
}
define internal i32 @g(i32 %n) {
  %y = sdiv i32 %n, 4
  ret i32 %y
})");
  EXPECT_TRUE(program) << program.error().message;
  EXPECT_TRUE(PassRunner().Run("default<O3>", program->module()));
  return IrTextOf(program->module());
}

TEST(HugeCode, ItRunsAsBefore) {
  InitializeX86();
  const std::string before = Optimised();
  const std::uint64_t bytes = BytesOfCodeWithoutFile();
  if (!MoveCodeToHugePages(reinterpret_cast<const void*>(&LLVMInitializeX86Target))) {
    GTEST_SKIP() << "this host has no huge pages";
  }
  EXPECT_GE(BytesOfCodeWithoutFile(), bytes + (std::uint64_t{20} << 20)) << "most of LLVM";
  EXPECT_EQ(Optimised(), before);
}

TEST(HugeCode, WhatIsNoLibraryStaysWhereItIs) {
  const int data = 0;
  const std::uint64_t bytes = BytesOfCodeWithoutFile();
  EXPECT_FALSE(MoveCodeToHugePages(&data));
  EXPECT_EQ(BytesOfCodeWithoutFile(), bytes);
}

}  // namespace
}  // namespace loopfleet::worker
