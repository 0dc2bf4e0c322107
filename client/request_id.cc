#include "client/request_id.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace loopfleet::client {

Uuid NewRequestId() {
  constexpr std::size_t kTimeBytes = 8;
  Uuid id = Uuid::Random();
  auto time = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
  for (std::size_t i = kTimeBytes; i-- > 0; time >>= 8) {
    id.bytes[i] = static_cast<std::uint8_t>(time);
  }
  return id;
}

}  // namespace loopfleet::client
