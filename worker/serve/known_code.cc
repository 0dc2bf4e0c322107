#include "worker/serve/known_code.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "common/base/unique_fd.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kMostLines = 1'000'000;

std::string LineOf(const std::string& code_hash, const std::string& tree_key) {
  return code_hash + " " + tree_key;
}

}  // namespace

KnownCode::KnownCode(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::ifstream file(path_);
  for (std::string line; lines_.size() < kMostLines && std::getline(file, line);) {
    lines_.insert(std::move(line));
  }
}

bool KnownCode::Has(const std::string& code_hash, const std::string& tree_key) const {
  return lines_.contains(LineOf(code_hash, tree_key));
}

void KnownCode::Add(const std::string& code_hash, const std::string& tree_key) {
  std::string line = LineOf(code_hash, tree_key);
  if (lines_.size() >= kMostLines || !lines_.insert(line).second || path_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const UniqueFd file(
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
  line += '\n';
  // One write, so that lines of several processes do not mix.
  if (file) static_cast<void>(::write(file.get(), line.data(), line.size()) < 0);
}

}  // namespace loopfleet::worker
