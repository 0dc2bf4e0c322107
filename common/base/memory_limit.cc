#include "common/base/memory_limit.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

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

// Where the controller of a line of /proc/self/cgroup has its files: "0::/a/b" or "4:memory:/a/b".
struct Controller {
  std::string_view directory;  // below sys/fs/cgroup
  std::string_view file;
  std::string_view group;  // the path from there
};
Controller ControllerOf(std::string_view line) {
  constexpr std::string_view kVersion2 = "0::/";
  constexpr std::string_view kVersion1 = ":memory:/";
  if (line.starts_with(kVersion2)) {
    return {.directory = ".", .file = "memory.max", .group = line.substr(kVersion2.size())};
  }
  if (const auto at = line.find(kVersion1); at != std::string_view::npos) {
    return {.directory = "memory",
            .file = "memory.limit_in_bytes",
            .group = line.substr(at + kVersion1.size())};
  }
  return {};
}

}  // namespace

MemoryLimit ReadMemoryLimit(const std::filesystem::path& proc, const std::filesystem::path& sys) {
  MemoryLimit found{.host_bytes = ReadHostBytes(proc / "meminfo")};
  std::uint64_t least = found.host_bytes;
  std::ifstream groups(proc / "self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const Controller controller = ControllerOf(line);
    if (controller.file.empty()) continue;
    const std::filesystem::path root = sys / "fs/cgroup" / controller.directory;
    // A group's limit holds for the groups in it, too.
    for (std::filesystem::path group = controller.group;; group = group.parent_path()) {
      const std::uint64_t limit = ReadLimit(root / group / controller.file);
      if (limit > 0 && (least == 0 || limit < least)) found.group_bytes = least = limit;
      if (group.empty()) break;
    }
  }
  return found;
}

}  // namespace loopfleet
