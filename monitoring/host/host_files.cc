#include "monitoring/host/host_files.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

#include "common/base/trim.h"

namespace loopfleet::monitoring {
namespace {

std::optional<std::string> ReadTrimmed(const std::filesystem::path& path) {
  constexpr std::streamsize kMostBytes = 64 << 10;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(static_cast<std::size_t>(kMostBytes), '\0');
  file.read(text.data(), kMostBytes);
  if (file.bad()) return std::nullopt;  // exists, but cannot be read
  text.resize(static_cast<std::size_t>(file.gcount()));
  return std::string(Trimmed(text));
}

std::optional<double> NumberOf(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(text->c_str(), &end);
  if (end == text->c_str()) return std::nullopt;
  return number;
}

std::vector<std::string> NamesIn(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code gone;
  std::filesystem::directory_iterator entry(directory, gone);
  for (; !gone && entry != std::filesystem::directory_iterator(); entry.increment(gone)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

HostFiles::HostFiles(std::filesystem::path proc, std::filesystem::path sys)
    : proc_(std::move(proc)), sys_(std::move(sys)) {}

std::optional<std::string> HostFiles::Proc(std::string_view path) const {
  return ReadTrimmed(proc_ / path);
}
std::optional<std::string> HostFiles::Sys(std::string_view path) const {
  return ReadTrimmed(sys_ / path);
}
std::optional<double> HostFiles::ProcNumber(std::string_view path) const {
  return NumberOf(Proc(path));
}
std::optional<double> HostFiles::SysNumber(std::string_view path) const {
  return NumberOf(Sys(path));
}
std::vector<std::string> HostFiles::SysNames(std::string_view directory) const {
  return NamesIn(sys_ / directory);
}

std::vector<int> ParseCpuList(std::string_view text) {
  constexpr int kMostCpus = 1 << 16;
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int first = 0;
    auto [rest, error] = std::from_chars(at, end, first);
    if (error != std::errc() || first < 0 || first >= kMostCpus) return cpus;
    int last = first;
    if (rest < end && *rest == '-') {
      const auto [after, bad] = std::from_chars(rest + 1, end, last);
      if (bad != std::errc() || last >= kMostCpus) return cpus;
      rest = after;
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = rest + (rest < end && *rest == ',' ? 1 : 0);
    if (at == rest) break;
  }
  return cpus;
}

}  // namespace loopfleet::monitoring
