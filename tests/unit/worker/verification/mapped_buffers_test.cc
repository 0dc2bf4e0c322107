#include "worker/verification/mapped_buffers.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "worker/verification/shared_memory.h"

namespace loopfleet::worker {
namespace {

using Access = MappedBuffers::Access;

constexpr std::uintptr_t kHashedBits = (std::uintptr_t{1} << 28) - 1;

class MappedBuffersTest : public testing::Test {
 protected:
  MappedBuffers Map(Access access) const {
    auto mapped = MappedBuffers::Map(memory_.fd(), memory_.bytes().size(), layout_.buffers, access);
    return mapped ? *std::move(mapped) : MappedBuffers{};
  }

  const BufferLayout layout_ = LayOut({{1000, 3000}}, 0);
  const SharedMemory memory_ = SharedMemory::Create(layout_.size).value();
};

std::uintptr_t PlaceOf(const MappedBuffers& mapped, std::size_t buffer) {
  return reinterpret_cast<std::uintptr_t>(mapped.buffers()[buffer].data()) & kHashedBits;
}

TEST_F(MappedBuffersTest, AllViewsHaveTheSameLowAddressBits) {
  const MappedBuffers one = Map(Access::kReadWrite);
  const MappedBuffers another = Map(Access::kReadWrite);
  const MappedBuffers inputs = Map(Access::kReadOnly);
  const MappedBuffers other_inputs = Map(Access::kReadOnly);
  ASSERT_EQ(one.buffers().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(PlaceOf(one, i), PlaceOf(another, i));
    EXPECT_EQ(PlaceOf(inputs, i), PlaceOf(other_inputs, i));
    EXPECT_NE(PlaceOf(one, i), PlaceOf(inputs, i));
  }
}

TEST_F(MappedBuffersTest, ViewsShareTheirMemory) {
  const MappedBuffers one = Map(Access::kReadWrite);
  const MappedBuffers another = Map(Access::kReadOnly);
  one.buffers()[1][42] = std::byte{7};
  EXPECT_EQ(another.buffers()[1][42], std::byte{7});
  EXPECT_EQ(memory_.bytes()[layout_.buffers[1].offset + 42], std::byte{7});
}

TEST_F(MappedBuffersTest, RefusesABufferOutsideItsMemory) {
  const PlacedBuffer outside{.offset = layout_.size - 10, .size = 20};
  const auto mapped =
      MappedBuffers::Map(memory_.fd(), layout_.size, {&outside, 1}, Access::kReadOnly);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace loopfleet::worker
