#pragma once
// "1 job", "2,000 jobs": a count with its noun, for people.

#include <cstdint>
#include <string>
#include <string_view>

namespace loopfleet {

// With commas: 1,234,567.
std::string Thousands(std::uint64_t number);

// `one` where the count is one, else `many`. Both may go on: "job waits", "jobs wait".
std::string Counted(std::uint64_t count, std::string_view one, std::string_view many);

}  // namespace loopfleet
