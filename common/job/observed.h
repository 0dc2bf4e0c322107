#pragma once
// Observed: the verdict on a job that is not timed: values by name. A large one is kept by the
// coordinator under its hash, and the verdict tells the hash.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace loopfleet {

// Bytes that the coordinator of the worker keeps, for a time.
struct Blob {
  std::string sha256;       // of the bytes: 64 lower-case hexadecimal digits
  std::uint64_t bytes = 0;  // 1 to 16 MiB
  friend bool operator==(const Blob&, const Blob&) = default;
};

// A number, several numbers, text, or a blob. Numbers are finite.
using ObservedValue = std::variant<double, std::vector<double>, std::string, Blob>;

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
