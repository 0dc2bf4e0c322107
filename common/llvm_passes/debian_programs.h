#pragma once
// The programs of the dataset debian-v0, as deploy/llvm/debian-v0.toml has them.

#include <span>
#include <string_view>

namespace loopfleet::passes {

struct DebianPin {
  std::string_view name;
  std::string_view sha256;  // of its bitcode: any other is not this program
};

std::span<const DebianPin> DebianPins();
const DebianPin* FindDebianPin(std::string_view name);  // nullptr: there is none of this name

}  // namespace loopfleet::passes
