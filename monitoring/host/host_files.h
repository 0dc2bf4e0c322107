#pragma once
// HostFiles: reads the small files that describe a Linux host, below /proc and /sys, or below other
// roots in tests. A missing file is nullopt, never an error: hosts differ in the files they have.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::monitoring {

class HostFiles {
 public:
  HostFiles() : HostFiles("/proc", "/sys") {}
  HostFiles(std::filesystem::path proc, std::filesystem::path sys);

  // The first 64 KiB of a file, without white space at its ends.
  std::optional<std::string> Proc(std::string_view path) const;
  std::optional<std::string> Sys(std::string_view path) const;
  // The number that the file begins with.
  std::optional<double> ProcNumber(std::string_view path) const;
  std::optional<double> SysNumber(std::string_view path) const;
  // Names in a directory of /sys, sorted; none if there is no such directory.
  std::vector<std::string> SysNames(std::string_view directory) const;

 private:
  std::filesystem::path proc_;
  std::filesystem::path sys_;
};

// Parses a list of processors as Linux writes it: "0-3,8".
std::vector<int> ParseCpuList(std::string_view text);

}  // namespace loopfleet::monitoring
