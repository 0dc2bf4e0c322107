#pragma once
// SharedValue: an optional value that copies share. Copying one costs a pointer; whoever changes
// its copy gets a value of its own first (copy on write), so nobody sees the other's change. Used
// like std::optional: empty, *value, value->member, reset().
//
// Copies may live in several threads; one object is one thread's at a time, like any value.

#include <memory>
#include <optional>
#include <utility>

#include "common/base/check.h"

namespace loopfleet {

template <class T>
class SharedValue {
 public:
  SharedValue() = default;
  SharedValue(std::nullopt_t) {}
  SharedValue(T value) : value_(std::make_shared<T>(std::move(value))) {}

  explicit operator bool() const { return value_ != nullptr; }
  bool has_value() const { return value_ != nullptr; }
  void reset() { value_.reset(); }
  T& emplace() { return *(value_ = std::make_shared<T>()); }

  // There has to be one.
  const T& operator*() const { return At(); }
  const T* operator->() const { return &At(); }
  T& operator*() { return Own(); }
  T* operator->() { return &Own(); }

  // Whether both are the same copy: true means equal, false says nothing.
  bool SharesWith(const SharedValue& other) const { return value_ == other.value_; }

  friend bool operator==(const SharedValue& a, const SharedValue& b) {
    if (a.value_ == b.value_) return true;
    return a.value_ != nullptr && b.value_ != nullptr && *a.value_ == *b.value_;
  }

 private:
  const T& At() const {
    LF_CHECK(value_ != nullptr, "there is no value");
    return *value_;
  }
  T& Own() {
    LF_CHECK(value_ != nullptr, "there is no value");
    if (value_.use_count() > 1) value_ = std::make_shared<T>(*value_);
    return *value_;
  }

  std::shared_ptr<T> value_;
};

}  // namespace loopfleet
