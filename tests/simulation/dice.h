#pragma once
// Dice: the random numbers of one part of the world. Each part has its own generator, so that
// removing one kind of fault from a seed leaves the random choices of the others unchanged.

#include <chrono>
#include <cstdint>

#include "common/base/clock.h"
#include "common/base/random.h"

namespace loopfleet::simulation {

class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t part)
      : random_(SplitMix64(seed * 0x9e3779b97f4a7c15ULL + part).Next()) {}

  bool Chance(double probability) {  // draws no number for 0: see above
    return probability > 0 && static_cast<double>(random_.Next() >> 11) * 0x1p-53 < probability;
  }
  // In [low, high].
  template <class T>
  T Between(T low, T high) {
    return low + static_cast<T>(random_.Below(static_cast<std::uint64_t>(high - low) + 1));
  }
  Nanos Between(Nanos low, Nanos high) { return Nanos(Between(low.count(), high.count())); }
  std::size_t Index(std::size_t size) { return random_.Below(size); }
  template <class Container>
  auto& Of(Container& container) {
    return container[Index(container.size())];
  }
  std::uint64_t Next() { return random_.Next(); }

 private:
  SplitMix64 random_;
};

}  // namespace loopfleet::simulation
