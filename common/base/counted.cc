#include "common/base/counted.h"

#include <fmt/format.h>

#include <cstddef>

namespace loopfleet {

std::string Thousands(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (auto place = static_cast<std::ptrdiff_t>(text.size()) - 3; place > 0; place -= 3) {
    text.insert(static_cast<std::size_t>(place), ",");
  }
  return text;
}

std::string Counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", Thousands(count), count == 1 ? one : many);
}

}  // namespace loopfleet
