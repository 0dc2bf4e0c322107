#pragma once
// Included by each core_kernels_*.cc, and by nothing else, with kVectorBytes defined: the same
// kernels for each instruction set, in vectors of the compiler's own. Everything is in an unnamed
// namespace: two instruction sets must not share a function.

#include <array>
#include <cstring>

#include "worker/timing/core_kernels.h"

namespace loopfleet::worker::core_kernels {
namespace {

// NOLINTNEXTLINE: the attribute has no other spelling
typedef float Vector __attribute__((vector_size(kVectorBytes)));
constexpr std::size_t kLanes = kVectorBytes / sizeof(float);
constexpr std::size_t kChains = 10;

Vector Splat(float value) {
  Vector vector;
  for (std::size_t i = 0; i < kLanes; ++i) vector[i] = value;
  return vector;
}

// Keeps the optimiser from knowing the value or dropping it.
void Hide(Vector& vector) { asm volatile("" : "+m"(vector)); }

Vector Load(const float* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

// What is added comes from the first cache, as the operands of real kernels do: whoever shares the
// core's load ports and that cache shows, too. A third of the smallest such cache there is.
constexpr std::size_t kOperandFloats = kChains * kLanes * (10'240 / (kChains * kVectorBytes));
struct alignas(64) Operands {
  std::array<float, kOperandFloats> values;
  Operands() { values.fill(0.001F); }
};

// Chains of their own values, which the compiler does not know. Nobody has the address of one, for
// then each would be stored anew in every step: that measured stores, and was 12 % slower or
// quicker as they pleased.
using Chains = std::array<Vector, kChains>;
Chains StartChains() {
  Vector one = Splat(1.0F);
  Chains x;
  for (Vector& chain : x) {
    Hide(one);
    chain = one;
  }
  return x;
}
void EndChains(const Chains& x) {
  for (Vector chain : x) Hide(chain);
}

// The values stay near 1: x * 0.999 + 0.001, so nothing becomes denormal or infinite.
void MultiplyAdds(std::uint64_t steps) {
  Chains x = StartChains();
  Vector scale = Splat(0.999F);
  Vector offset = Splat(0.001F);
  Hide(scale);
  Hide(offset);
  for (std::uint64_t i = 0; i < steps; ++i) {
    for (Vector& chain : x) chain = chain * scale + offset;
  }
  EndChains(x);
}

void MultiplyAddsFromCache(std::uint64_t steps) {
  static const Operands operands;
  Chains x = StartChains();
  Vector scale = Splat(0.999F);
  Hide(scale);
  const float* const end = operands.values.data() + kOperandFloats;
  const float* next = operands.values.data();
  for (std::uint64_t i = 0; i < steps; ++i) {
    for (std::size_t k = 0; k < kChains; ++k) x[k] = x[k] * scale + Load(next + k * kLanes);
    next += kChains * kLanes;
    if (next == end) next = operands.values.data();
    asm volatile("" : "+r"(next));  // what it points to is loaded anew each time
  }
  EndChains(x);
}

float Read(const float* data, std::size_t count) {
  constexpr std::size_t kStreams = 4;
  std::array<Vector, kStreams> sums;
  for (Vector& sum : sums) sum = Splat(0);
  for (std::size_t i = 0; i < count; i += kStreams * kLanes) {
    for (std::size_t k = 0; k < kStreams; ++k) sums[k] += Load(data + i + k * kLanes);
  }
  const Vector total = sums[0] + sums[1] + sums[2] + sums[3];
  float result = 0;
  for (std::size_t i = 0; i < kLanes; ++i) result += total[i];
  return result;
}

void Triad(float* a, const float* b, const float* c, std::size_t count) {
  Vector scale = Splat(0.5F);
  Hide(scale);
  for (std::size_t i = 0; i < count; i += kLanes) {
    const Vector sum = Load(b + i) + scale * Load(c + i);
    std::memcpy(a + i, &sum, sizeof sum);
  }
}

// `units`: that begin a fused multiply-add of such vectors in every cycle, at most; 0: not known.
constexpr CoreKernels TheseWith(double units) {
  return {.multiply_adds = MultiplyAdds,
          .multiply_adds_from_cache = MultiplyAddsFromCache,
          .flop_per_step = kChains * kLanes * 2,
          .least_cycles_per_step = units == 0 ? 0 : static_cast<double>(kChains) / units,
          .read = Read,
          .triad = Triad};
}

}  // namespace
}  // namespace loopfleet::worker::core_kernels
