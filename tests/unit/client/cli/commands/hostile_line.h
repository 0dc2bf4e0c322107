#pragma once
// HostileLines: lines that an attacker or a broken program might send to `loopfleet replay`, drawn
// from a seed. Sizes 0, 1, -1, 2^31, 2^63-1 and primes, split storms, walks off the tree, names
// that are not UTF-8, lines over the limit, deep nesting, view expressions that overflow, programs
// at the limits.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/random.h"

namespace loopfleet::client {

class HostileLines {
 public:
  explicit HostileLines(std::uint64_t seed) : random_(seed) {}

  struct Line {
    std::string_view kind;
    std::string text;  // without a line break
  };
  Line Next();

 private:
  std::string Number();
  std::string Name();
  std::string Uri();
  std::string Actions(std::size_t most);
  std::string Program();
  std::string WideProgram();
  std::string View();
  std::string Expression(std::size_t& entries);
  std::string Garbage(std::size_t size);

  Line Sizes();
  Line SplitStorm();
  Line OffTheTree();
  Line SimpleStorm();
  Line BadNames();
  Line TooManyActions();
  Line DeepNesting();
  Line MutatedProgram();
  Line OverflowingView();
  Line LargeProgram();
  Line LongLine();
  Line Options();

  template <std::size_t n>
  std::string_view OneOf(const std::string_view (&choices)[n]) {
    return choices[random_.Below(n)];
  }

  SplitMix64 random_;
};

}  // namespace loopfleet::client
