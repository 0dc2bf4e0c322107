#pragma once
// Two sources of randomness: the operating system (ids, secret seeds), and SplitMix64, which gives
// the same sequence for a seed on every machine (inputs, walks, simulations).

#include <cstdint>
#include <span>

namespace loopfleet {

// Aborts if the operating system provides no randomness.
void FillWithOsRandomness(std::span<std::uint8_t> bytes);
std::uint64_t OsRandom64();

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound); bound > 0. The bias for bounds far below 2^64 does not matter here.
  std::uint64_t Below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Uint128>(Next()) * bound) >> 64);
  }

 private:
  __extension__ using Uint128 = unsigned __int128;
  std::uint64_t state_;
};

}  // namespace loopfleet
