#pragma once
// Linker: turns an object file of CpuCompiler into code. The only symbols an object can reach are
// the few functions of the C library that kernels need (expf, logf ...): there is no look-up in the
// process. Thread-compatible; keeps nothing between calls.

#include <memory>
#include <string_view>

#include "common/base/result.h"
#include "worker/backend/kernel.h"

namespace loopfleet::worker {

// Code in this process; freed with the object.
class LinkedKernel {
 public:
  ~LinkedKernel();
  LinkedKernel(const LinkedKernel&) = delete;
  LinkedKernel& operator=(const LinkedKernel&) = delete;
  KernelFunction function() const { return function_; }

 private:
  friend class Linker;
  LinkedKernel(void* memory, std::size_t size) : memory_(memory), size_(size) {}
  void* const memory_;
  const std::size_t size_;
  KernelFunction function_ = nullptr;
};

class Linker final : public CodeLinker {
 public:
  Result<CodeImage> LinkAt(std::string_view object, std::uint64_t address,
                           std::size_t max_bytes) override;

  // Links into memory of its own, here: for tests and benchmarks, which run no code that they do
  // not trust.
  Result<std::unique_ptr<LinkedKernel>> Link(std::string_view object);
};

}  // namespace loopfleet::worker
