#pragma once
// Buffer: the float32 elements of a tensor, shared by tensors, arrays and whatever else shows them.
// Either memory of its own, 64-byte aligned, or foreign memory that `owner` keeps alive. Its
// content is written once, before others see it: what is computed again gets another buffer.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace loopfleet::tensor {

class Buffer {
 public:
  // Not initialised. std::bad_alloc if there is no memory.
  static std::shared_ptr<Buffer> Make(std::size_t count);
  static std::shared_ptr<Buffer> Zeros(std::size_t count);
  // Any multiple of 4 bytes.
  static std::shared_ptr<Buffer> Foreign(const float* data, std::size_t count,
                                         std::shared_ptr<void> owner);
  Buffer(float* data, std::size_t count, std::shared_ptr<void> owner);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // For foreign memory read-only by agreement.
  float* data() const { return data_; }
  std::size_t count() const { return count_; }
  bool is_foreign() const { return owner_ != nullptr; }

 private:
  float* const data_;
  const std::size_t count_;
  const std::shared_ptr<void> owner_;  // null: our own memory
};

}  // namespace loopfleet::tensor
