#pragma once
// The memory that this process may use.

#include <cstdint>
#include <filesystem>

namespace loopfleet {

struct MemoryLimit {
  std::uint64_t host_bytes = 0;   // of the machine; 0: unknown
  std::uint64_t group_bytes = 0;  // lowest limit of the process's control groups; 0: none is lower

  std::uint64_t bytes() const { return group_bytes == 0 ? host_bytes : group_bytes; }
};

// Reads it. Control groups (version 2, or the memory controller of version 1) are those of a
// container or a service. The parameters are for tests.
MemoryLimit ReadMemoryLimit(const std::filesystem::path& proc = "/proc",
                            const std::filesystem::path& sys = "/sys");

}  // namespace loopfleet
