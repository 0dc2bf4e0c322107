#include "tests/gpu/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace loopfleet::worker {
namespace {

bool IsPart(std::string_view name) {
  if (std::ranges::find(kParts, name) != std::end(kParts)) return true;
  fmt::print(stderr, "gpu_conformance: there is no part '{}'; there are {}\n", name,
             fmt::join(kParts, ", "));
  return false;
}

}  // namespace

bool ParseOptions(int argc, char** argv, Options& options) {
  std::string parts;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : nullptr;
    const std::pair<std::string_view, int*> kNumbers[] = {
        {"--device", &options.device},         {"--trees", &options.trees},
        {"--only-trees", &options.only_trees}, {"--largest", &options.largest},
        {"--repeats", &options.repeats},       {"--search-seconds", &options.search_seconds},
        {"--fake", &options.is_fake}};
    const std::pair<std::string_view, std::string*> kTexts[] = {{"--fault", &options.fault},
                                                                {"--parts", &parts},
                                                                {"--alone", &options.alone},
                                                                {"--json", &options.json}};
    bool is_known = false;
    for (const auto& [name, number] : kNumbers) {
      if (flag != name || value == nullptr) continue;
      *number = std::max(0, std::atoi(value));
      is_known = true;
    }
    for (const auto& [name, text] : kTexts) {
      if (flag != name || value == nullptr) continue;
      *text = value;
      is_known = true;
    }
    if (flag == "--seconds" && value != nullptr) {
      options.seconds = std::atof(value);
      is_known = true;
    }
    if (flag == "--seed" && value != nullptr) {
      options.seed = static_cast<std::uint64_t>(std::atoll(value));
      is_known = true;
    }
    if (!is_known) {
      fmt::print(stderr, "gpu_conformance: {} is no flag, or lacks its value\n", flag);
      return false;
    }
  }
  options.repeats = std::max(1, options.repeats);
  while (!parts.empty()) {
    std::string part = parts.substr(0, parts.find(','));
    parts.erase(0, part.size() + 1);
    if (!IsPart(part)) return false;
    options.parts.push_back(std::move(part));
  }
  return options.alone.empty() || IsPart(options.alone);
}

}  // namespace loopfleet::worker
