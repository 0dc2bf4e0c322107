#pragma once
// Trace: everything that happened, as a hash, and on request as lines of text. Two runs of a seed
// are equal exactly if their hashes are.

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include "common/base/clock.h"

namespace loopfleet::simulation {

class Trace {
 public:
  enum class Text { kNone, kPrinted };
  explicit Trace(Text text) : text_(text) {}

  // `describe` returns the line; called only if text is printed. The numbers are hashed.
  template <class Describe>
  void Note(Instant now, std::uint64_t what, std::uint64_t first, std::uint64_t second,
            const Describe& describe) {
    Mix(static_cast<std::uint64_t>(now.time_since_epoch().count()));
    Mix(what);
    Mix(first);
    Mix(second);
    ++notes_;
    if (text_ == Text::kNone) return;
    const double seconds = std::chrono::duration<double>(now.time_since_epoch()).count();
    fmt::print("{:12.6f}  {}\n", seconds, std::string(describe()));
  }
  void Mix(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15ULL;
    hash_ ^= hash_ >> 29;
  }

  std::uint64_t hash() const { return hash_; }
  std::uint64_t notes() const { return notes_; }
  bool is_printed() const { return text_ == Text::kPrinted; }

 private:
  Text text_;
  std::uint64_t hash_ = 0x243f6a8885a308d3ULL;
  std::uint64_t notes_ = 0;
};

}  // namespace loopfleet::simulation
