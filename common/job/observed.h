#pragma once
// Observed: the verdict on a job that is not timed: values by name.

#include <cstddef>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace loopfleet {

// A number, several numbers, or text. Numbers are finite.
using ObservedValue = std::variant<double, std::vector<double>, std::string>;

struct Observed {
  std::map<std::string, ObservedValue, std::less<>> values;
  friend bool operator==(const Observed&, const Observed&) = default;
};

// Bounds of one verdict, so that it always fits one message.
inline constexpr std::size_t kMostObservedValues = 64;
inline constexpr std::size_t kMostObservedNameBytes = 64;
inline constexpr std::size_t kMostObservedBytes = std::size_t{512} << 10;  // names and values

// Bytes of the names and values.
std::size_t BytesOf(const Observed& observed);

}  // namespace loopfleet
