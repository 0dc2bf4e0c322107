#include "kernel/code_area.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace loopfleet {
namespace {

CodeImage Bytes(std::size_t count) { return {.bytes = std::string(count, '\xc3'), .entry = 0}; }

TEST(CodeAreaTest, PlacesDoNotOverlapAndComeBack) {
  const auto area = CodeArea::Create(std::size_t{64} << 10).value();
  const CodePlace all = area->FreePlace();
  EXPECT_EQ(all.max_bytes, std::size_t{64} << 10);
  auto first = area->Write(Bytes(100)).value();
  const CodePlace after_one = area->FreePlace();
  EXPECT_EQ(after_one.address, all.address + 4096);
  auto second = area->Write(Bytes(5000)).value();
  EXPECT_EQ(area->FreePlace().address, all.address + 4096 + 8192);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(second->function()), after_one.address);
  first.reset();
  second.reset();
  EXPECT_EQ(area->FreePlace().address, all.address);
  EXPECT_EQ(area->FreePlace().max_bytes, all.max_bytes);
}

TEST(CodeAreaTest, WrittenCodeRuns) {
#if defined(__x86_64__)
  const auto area = CodeArea::Create(std::size_t{64} << 10).value();
  // Stores 1.0 through the first pointer: mov rax, [rdi]; mov dword [rax], 0x3f800000; ret.
  const std::string code = "\x48\x8b\x07\xc7" + std::string("\x00\x00\x00\x80\x3f", 5) + "\xc3";
  const auto block = area->Write({.bytes = code, .entry = 0}).value();
  float value = 0;
  float* const pointers[] = {&value};
  block->function()(pointers);
  EXPECT_EQ(value, 1.0F);
#else
  GTEST_SKIP() << "the code is for x86-64";
#endif
}

TEST(CodeAreaTest, RefusesWhatDoesNotFit) {
  const auto area = CodeArea::Create(8192).value();
  EXPECT_FALSE(area->Write(Bytes(8193)));
  EXPECT_FALSE(area->Write({.bytes = "x", .entry = 1}));
  const auto all = area->Write(Bytes(8192)).value();
  EXPECT_EQ(area->FreePlace().max_bytes, 0U);
  EXPECT_FALSE(area->Write(Bytes(1)));
}

}  // namespace
}  // namespace loopfleet
