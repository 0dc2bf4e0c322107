#pragma once
// Control: how the fake device behaves, from the file named by LOOPFLEET_FAKE_CUDA. Each line has a
// word and numbers. The file is read at each use, so that a test can change it while a worker runs.
// Without a file, the device is healthy.

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace loopfleet::fake_cuda {

class Control {
 public:
  static Control Read() {
    Control control;
    const char* const path = std::getenv("LOOPFLEET_FAKE_CUDA");
    if (path == nullptr) return control;
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string key;
      words >> key;
      std::vector<std::int64_t> values;
      for (std::string value; words >> value;) values.push_back(std::stoll(value, nullptr, 0));
      control.lines_.emplace(key, std::move(values));
    }
    return control;
  }

  // The first number of the line that begins with `key`, or `otherwise`.
  std::int64_t Get(const std::string& key, std::int64_t otherwise) const {
    const auto at = lines_.find(key);
    return at == lines_.end() || at->second.empty() ? otherwise : at->second.front();
  }
  // For lines with a size in bytes (0: any) and a value (default 1): the value for `bytes`, or
  // `otherwise`.
  std::int64_t ForBytes(const std::string& key, std::uint64_t bytes, std::int64_t otherwise) const {
    const auto [first, last] = lines_.equal_range(key);
    for (auto at = first; at != last; ++at) {
      const std::vector<std::int64_t>& values = at->second;
      if (values.empty()) continue;
      if (values[0] != 0 && static_cast<std::uint64_t>(values[0]) != bytes) continue;
      return values.size() > 1 ? values[1] : 1;
    }
    return otherwise;
  }

 private:
  std::multimap<std::string, std::vector<std::int64_t>> lines_;
};

}  // namespace loopfleet::fake_cuda
