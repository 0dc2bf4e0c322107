#include "common/base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "common/base/check.h"

namespace loopfleet {

void FillWithOsRandomness(std::span<std::uint8_t> bytes) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (count < 0 && errno == EINTR) continue;
    LF_CHECK(count > 0, "getrandom: {}", std::strerror(errno));
    filled += static_cast<std::size_t>(count);
  }
}

std::uint64_t OsRandom64() {
  std::uint64_t value = 0;
  FillWithOsRandomness({reinterpret_cast<std::uint8_t*>(&value), sizeof value});
  return value;
}

}  // namespace loopfleet
