#include "worker/backend/code_hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace loopfleet::worker {

std::string CodeHash(std::string_view object) {
  const XXH128_hash_t hash = XXH3_128bits(object.data(), object.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace loopfleet::worker
