#include "tensor/buffer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace loopfleet::tensor {
namespace {

constexpr std::align_val_t kAlignment{64};

// Freed memory by its size, for the next buffer of that size: new pages cost more than small
// kernels. Not under the address sanitizer, which is to see what reads it.
class Spares {
 public:
  void* Take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = by_size_.find(bytes);
    if (found == by_size_.end() || found->second.empty()) return nullptr;
    void* const memory = found->second.back();
    found->second.pop_back();
    bytes_ -= bytes;
    return memory;
  }
  // False: enough is kept.
  bool Keep(void* memory, std::size_t bytes) {
    if (kIsSanitized) return false;
    const std::lock_guard lock(mutex_);
    if (bytes_ + bytes > kMostBytes ||
        (by_size_.size() >= kMostSizes && !by_size_.contains(bytes))) {
      return false;
    }
    by_size_[bytes].push_back(memory);
    bytes_ += bytes;
    return true;
  }

 private:
#ifdef __SANITIZE_ADDRESS__
  static constexpr bool kIsSanitized = true;
#else
  static constexpr bool kIsSanitized = false;
#endif
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMostSizes = 256;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> by_size_;
  std::size_t bytes_ = 0;
};

Spares& TheSpares() {
  static Spares* const spares = new Spares;  // buffers may be freed after static destructors
  return *spares;
}

std::size_t BytesFor(std::size_t count) {
  constexpr std::size_t kLine = 64;
  return (std::max<std::size_t>(count, 1) * sizeof(float) + kLine - 1) / kLine * kLine;
}

}  // namespace

Buffer::Buffer(float* data, std::size_t count, std::shared_ptr<void> owner)
    : data_(data), count_(count), owner_(std::move(owner)) {}

Buffer::~Buffer() {
  if (owner_ || TheSpares().Keep(data_, BytesFor(count_))) return;
  ::operator delete(data_, kAlignment);
}

std::shared_ptr<Buffer> Buffer::Make(std::size_t count) {
  void* memory = TheSpares().Take(BytesFor(count));
  if (memory == nullptr) memory = ::operator new(BytesFor(count), kAlignment);
  return std::make_shared<Buffer>(static_cast<float*>(memory), count, nullptr);
}

std::shared_ptr<Buffer> Buffer::Zeros(std::size_t count) {
  auto buffer = Make(count);
  std::memset(buffer->data(), 0, count * sizeof(float));
  return buffer;
}

std::shared_ptr<Buffer> Buffer::Foreign(const float* data, std::size_t count,
                                        std::shared_ptr<void> owner) {
  return std::make_shared<Buffer>(const_cast<float*>(data), count, std::move(owner));
}

}  // namespace loopfleet::tensor
