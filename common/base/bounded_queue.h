#pragma once
// BoundedQueue: hands values from one thread to another. Any number of threads may push and pop.
// Never holds more than its capacity. Close() wakes all waiting threads; values already queued can
// still be popped.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace loopfleet {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  // Blocks while full. False if the queue is closed; the value is dropped then.
  bool Push(T value) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(value));
    not_empty_.notify_one();
    return true;
  }

  // Never blocks. False if full or closed; the value stays with the caller then.
  bool TryPush(T& value) {
    std::lock_guard lock(mutex_);
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(value));
    not_empty_.notify_one();
    return true;
  }

  // Blocks until there is a value. nullopt once the queue is closed and drained.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return closed_ || !items_.empty(); });
    return TakeFront();
  }

  // The same, but blocks for at most `wait`. nullopt after a timeout, too: see is_closed().
  template <class Duration>
  std::optional<T> PopWithin(Duration wait) {
    std::unique_lock lock(mutex_);
    not_empty_.wait_for(lock, wait, [&] { return closed_ || woken_ || !items_.empty(); });
    woken_ = false;
    return TakeFront();
  }

  // Ends the current PopWithin, or the next one at once, if it finds no value.
  void Wake() {
    std::lock_guard lock(mutex_);
    woken_ = true;
    not_empty_.notify_all();
  }

  bool is_empty() const {
    std::lock_guard lock(mutex_);
    return items_.empty();
  }

  bool is_closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

  // Never blocks. nullopt if the queue is empty.
  std::optional<T> TryPop() {
    std::lock_guard lock(mutex_);
    return TakeFront();
  }

  // Blocks until there is a value, then takes everything queued, for a group commit. Empty once the
  // queue is closed and drained.
  std::vector<T> PopAll() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return closed_ || !items_.empty(); });
    return TakeAll();
  }

  // The same, but blocks for at most `wait`. Empty after a timeout, too: see is_closed().
  template <class Duration>
  std::vector<T> PopAllWithin(Duration wait) {
    std::unique_lock lock(mutex_);
    not_empty_.wait_for(lock, wait, [&] { return closed_ || !items_.empty(); });
    return TakeAll();
  }

  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    not_empty_.notify_all();
    not_full_.notify_all();
  }

  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  std::optional<T> TakeFront() {
    if (items_.empty()) return std::nullopt;
    T value = std::move(items_.front());
    items_.pop_front();
    not_full_.notify_one();
    return value;
  }

  std::vector<T> TakeAll() {
    std::vector<T> all(std::make_move_iterator(items_.begin()),
                       std::make_move_iterator(items_.end()));
    items_.clear();
    not_full_.notify_all();
    return all;
  }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::deque<T> items_;  // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
  bool woken_ = false;   // guarded by mutex_
};

}  // namespace loopfleet
