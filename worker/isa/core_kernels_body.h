#pragma once
// Included only by the core_kernels_*.cc files, each of which defines kVectorBytes: the same
// kernels for each instruction set, in the compiler's vector types. Everything is in an unnamed
// namespace, because two instruction sets must not share a function.

#include <array>
#include <cstring>

#include "worker/isa/core_kernels.h"

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

// The addends come from the first-level cache, as the operands of real kernels do, so a neighbour
// that uses the core's load ports or that cache slows the probe too. They fill a third of the
// smallest such cache.
constexpr std::size_t kOperandFloats = kChains * kLanes * (10'240 / (kChains * kVectorBytes));
struct alignas(64) Operands {
  std::array<float, kOperandFloats> values;
  Operands() { values.fill(0.001F); }
};

// Independent chains whose values the compiler does not know. Do not take the address of a chain:
// each would then be stored in every step, which once measured stores instead and varied by 12 %.
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
    asm volatile("" : "+r"(next));  // forces a load from it in every step
  }
  EndChains(x);
}

void DependentMultiplyAdds(std::uint64_t steps) {
  Vector x = Splat(1.0F);
  Vector scale = Splat(0.999F);
  Vector offset = Splat(0.001F);
  Hide(x);
  Hide(scale);
  Hide(offset);
  for (std::uint64_t i = 0; i < steps; ++i) x = x * scale + offset;
  Hide(x);
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

// `units`: the most units that begin a fused multiply-add of these vectors in every cycle; 0:
// unknown.
constexpr CoreKernels MakeKernels(double units, const CoreKernels* narrower = nullptr) {
  return {.multiply_adds = MultiplyAdds,
          .multiply_adds_from_cache = MultiplyAddsFromCache,
          .flop_per_step = kChains * kLanes * 2,
          .least_cycles_per_step = units == 0 ? 0 : static_cast<double>(kChains) / units,
          .narrower = narrower,
          .vector_bytes = kVectorBytes,
          .dependent_multiply_adds = units == 0 ? nullptr : DependentMultiplyAdds,
          .read = Read,
          .triad = Triad};
}

}  // namespace
}  // namespace loopfleet::worker::core_kernels
