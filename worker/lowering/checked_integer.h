#pragma once
// CheckedInteger: a 64-bit integer that remembers when a sum or product did not fit.

#include <cstdint>

namespace loopfleet::worker {

class CheckedInteger {
 public:
  CheckedInteger(std::int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor)

  bool overflowed() const { return overflowed_; }
  std::int64_t value() const { return value_; }  // meaningless after an overflow

  friend CheckedInteger operator+(CheckedInteger a, CheckedInteger b) {
    CheckedInteger sum(0);
    sum.overflowed_ =
        __builtin_add_overflow(a.value_, b.value_, &sum.value_) || a.overflowed_ || b.overflowed_;
    return sum;
  }
  friend CheckedInteger operator*(CheckedInteger a, CheckedInteger b) {
    CheckedInteger product(0);
    product.overflowed_ = __builtin_mul_overflow(a.value_, b.value_, &product.value_) ||
                          a.overflowed_ || b.overflowed_;
    return product;
  }

 private:
  std::int64_t value_;
  bool overflowed_ = false;
};

}  // namespace loopfleet::worker
