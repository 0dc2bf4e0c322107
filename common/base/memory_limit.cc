#include "common/base/memory_limit.h"

#include <sys/sysinfo.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

#include "common/base/control_group.h"

namespace loopfleet {
namespace {

std::uint64_t ReadHostBytes(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string key;
  std::uint64_t kibibytes = 0;
  stream >> key >> kibibytes;  // "MemTotal:  24689884 kB" comes first
  if (key == "MemTotal:") return kibibytes * 1024;
  // A service may see the processes in /proc alone (systemd's ProcSubset=pid).
  struct sysinfo info{};
  return ::sysinfo(&info) == 0 ? std::uint64_t{info.totalram} * info.mem_unit : 0;
}

// The limit in the file; 0: none ("max", or there is no such file).
std::uint64_t ReadLimit(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string text;
  std::getline(stream, text);
  std::uint64_t limit = 0;
  std::from_chars(text.data(), text.data() + text.size(), limit);
  return limit;
}

}  // namespace

MemoryLimit ReadMemoryLimit(const std::filesystem::path& proc, const std::filesystem::path& sys) {
  MemoryLimit found{.host_bytes = ReadHostBytes(proc / "meminfo")};
  std::uint64_t least = found.host_bytes;
  std::ifstream file(proc / "self/cgroup");
  const std::string memberships(std::istreambuf_iterator<char>(file), {});
  for (const ControlGroup& group : ControlGroupsOf(memberships, "memory")) {
    const char* const name = group.version == 2 ? "memory.max" : "memory.limit_in_bytes";
    const std::uint64_t limit = ReadLimit(sys / group.directory / name);
    if (limit > 0 && (least == 0 || limit < least)) found.group_bytes = least = limit;
  }
  return found;
}

}  // namespace loopfleet
