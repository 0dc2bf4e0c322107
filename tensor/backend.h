#pragma once
// Backend: makes code of a loop tree and runs it on this machine. `cpu` (kernel/tensor_backend.h)
// compiles; `cpu_interpreted` walks the loops of the tree, slowly, and needs no compiler.

#include <cstdint>
#include <memory>
#include <string>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::tensor {

class Runnable {
 public:
  virtual ~Runnable() = default;
  // Pointers per Program::inputs, at any multiple of 4 bytes, and per Program::outputs, 64-byte
  // aligned. Safe from any thread.
  virtual void Run(const float* const* inputs, float* const* outputs) = 0;
  virtual std::uint64_t scratch_bytes() const = 0;
  // What its user should be told, such as that nothing could judge its output; "": nothing.
  virtual std::string remark() const { return {}; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  // Throws TensorError of kind kKernel. One thread at a time.
  virtual std::shared_ptr<Runnable> Compile(const looptree::LoopTree& tree) = 0;
};

std::shared_ptr<Backend> InterpretedBackend();

}  // namespace loopfleet::tensor
