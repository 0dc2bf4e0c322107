#pragma once
// DimSet: a set of a program's dimensions in one word. Programs have at most kMaxDims dimensions.

#include <bit>
#include <cstdint>

#include "common/looptree/program/program.h"

namespace loopfleet::looptree {

inline constexpr std::uint32_t kMaxDims = 64;

class DimSet {
 public:
  void Add(DimId dim) { bits_ |= std::uint64_t{1} << dim; }
  bool Has(DimId dim) const { return (bits_ >> dim & 1) != 0; }
  bool empty() const { return bits_ == 0; }
  int size() const { return std::popcount(bits_); }

  friend DimSet operator|(DimSet a, DimSet b) { return DimSet(a.bits_ | b.bits_); }
  friend DimSet operator-(DimSet a, DimSet b) { return DimSet(a.bits_ & ~b.bits_); }
  friend bool operator==(DimSet, DimSet) = default;

  DimSet() = default;

 private:
  explicit DimSet(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = 0;
};

}  // namespace loopfleet::looptree
