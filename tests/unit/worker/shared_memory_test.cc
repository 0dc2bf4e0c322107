#include "worker/shared_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace loopfleet::worker {
namespace {

// Of the mapping that starts there, in huge pages of shared memory.
std::uint64_t HugeKilobytes(const void* start) {
  std::ifstream mappings("/proc/self/smaps");
  const std::string wanted = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(start));
  bool is_in_it = false;
  for (std::string line; std::getline(mappings, line);) {
    if (line.starts_with(wanted)) is_in_it = true;
    constexpr std::string_view kField = "ShmemPmdMapped:";
    if (is_in_it && line.starts_with(kField)) return std::stoull(line.substr(kField.size()));
  }
  return 0;
}

TEST(SharedMemoryTest, MemoryInBlocksIsZeroedAndWhole) {
  for (const std::size_t wanted : {std::size_t{1}, std::size_t{5} << 20}) {
    const auto memory = SharedMemory::Create(wanted, SharedMemory::Pages::kInBlocks);
    ASSERT_TRUE(memory) << memory.error().message;
    EXPECT_EQ(memory->bytes().size(), SharedMemory::SizeOf(wanted, SharedMemory::Pages::kInBlocks));
    EXPECT_TRUE(std::ranges::all_of(memory->bytes(),
                                    [](std::byte byte) { return byte == std::byte{0}; }));
    const std::uint64_t huge = HugeKilobytes(memory->bytes().data());
    if (huge == 0) GTEST_SKIP() << "this host has no huge pages to give";
    EXPECT_EQ(huge * 1024, memory->bytes().size());
  }
}

}  // namespace
}  // namespace loopfleet::worker
