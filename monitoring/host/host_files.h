#pragma once
// HostFiles: the small files in which Linux tells of itself, below /proc and /sys, or below other
// roots, where tests put what they want to be told. What is not there is nullopt, never an error:
// which files there are differs from host to host.

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

  // All of a file of at most 64 KiB, without white space at its ends.
  std::optional<std::string> Proc(std::string_view path) const;
  std::optional<std::string> Sys(std::string_view path) const;
  // The number that the file begins with.
  std::optional<double> ProcNumber(std::string_view path) const;
  std::optional<double> SysNumber(std::string_view path) const;
  bool HasSys(std::string_view path) const;
  // Names in a directory of /sys, sorted; none if there is no such directory.
  std::vector<std::string> SysNames(std::string_view directory) const;
  std::vector<std::string> ProcNames(std::string_view directory) const;

 private:
  std::filesystem::path proc_;
  std::filesystem::path sys_;
};

// "0-3,8" as Linux writes lists of processors.
std::vector<int> ParseCpuList(std::string_view text);

}  // namespace loopfleet::monitoring
