#pragma once
// Linker: links an object file of CpuCompiler into machine code. The only external symbols an
// object can reach are the few C library functions that kernels need (expf, logf ...): the process
// itself is not searched. Keeps no state between calls. Used by one thread at a time.

#include <memory>
#include <string_view>

#include "common/base/result.h"
#include "kernel/kernel.h"

namespace loopfleet::worker {

// Code in this process. The destructor frees it.
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
  Result<CodeImage> LinkAt(std::string_view object, const CodePlace& place) override;

  // Links into newly mapped memory of this process. For tests and benchmarks, which run only code
  // they trust.
  Result<std::unique_ptr<LinkedKernel>> Link(std::string_view object);
};

}  // namespace loopfleet::worker
