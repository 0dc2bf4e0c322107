#pragma once
// Linker: turns an object file of CpuCompiler into code that can be called, in this process. Used
// in executor children. The only symbols an object can reach are the few functions of the C library
// that kernels need (expf, logf ...): there is no look-up in the process.

#include <memory>
#include <string_view>

#include "common/base/result.h"
#include "worker/backend.h"

namespace loopfleet::worker {

// Code in memory; freed with the object. Keeps what it needs of the Linker alive.
class LinkedKernel final : public LoadedKernel {
 public:
  ~LinkedKernel() override;
  KernelFunction function() const override { return function_; }

 private:
  friend class Linker;
  struct State;
  LinkedKernel(std::unique_ptr<State> state, KernelFunction entry);
  std::unique_ptr<State> state_;
  KernelFunction function_ = nullptr;
};

class Linker {
 public:
  static Result<std::unique_ptr<Linker>> Create();
  ~Linker();

  // kCorrupt if the bytes are no object file of this host that defines kKernelSymbol.
  Result<std::unique_ptr<LinkedKernel>> Link(std::string_view object);

 private:
  friend class LinkedKernel;
  struct Session;
  explicit Linker(std::shared_ptr<Session> session);
  std::shared_ptr<Session> session_;
};

}  // namespace loopfleet::worker
