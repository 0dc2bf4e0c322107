#include "common/base/control_group.h"

#include <filesystem>
#include <sstream>

namespace loopfleet {

std::vector<ControlGroup> ControlGroupsOf(std::string_view memberships,
                                          std::string_view controller) {
  std::vector<ControlGroup> groups;
  std::istringstream lines{std::string(memberships)};
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const std::size_t first = line.find(':');
    if (first == std::string::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string named = ',' + line.substr(first + 1, second - first - 1) + ',';
    const bool is_version_2 = named == ",,";
    if (!is_version_2 && !named.contains(',' + std::string(controller) + ',')) continue;
    std::filesystem::path root = "fs/cgroup";
    if (!is_version_2) root /= controller;
    const std::filesystem::path own = line.substr(second + 1);
    for (std::filesystem::path group = own.relative_path();; group = group.parent_path()) {
      groups.push_back({.version = is_version_2 ? 2 : 1, .directory = (root / group).string()});
      if (group.empty()) break;
    }
  }
  return groups;
}

}  // namespace loopfleet
