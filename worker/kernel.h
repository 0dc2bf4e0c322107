#pragma once
// Kernel: a loop tree, compiled: what travels from the compiler child to the executor child.
//
// The calling convention, the same for every backend on the CPU:
//   extern "C" void loopfleet_kernel(float* const* buffers);
// `buffers` has one pointer for each of `buffers` below, in that order: the program's inputs, its
// outputs, then scratch. Tensors are dense and row-major over the node's dims; every buffer is 64-byte
// aligned. A kernel writes every element of its outputs, never writes its inputs, and keeps nothing
// between runs.
//
// A kernel with `threads` > 1 finds behind those pointers one more: that of a ParallelFor
// (worker/parallel_for.h), which runs its parallel loops. Others do not look at it.

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/loop_tree.h"

namespace loopfleet::worker {

inline constexpr const char* kKernelSymbol = "loopfleet_kernel";
using KernelFunction = void (*)(float* const* buffers);

struct BufferSpec {
  enum class Role : std::uint8_t { kInput, kOutput, kScratch };
  Role role = Role::kInput;
  std::uint64_t element_count = 0;  // float32
  friend bool operator==(const BufferSpec&, const BufferSpec&) = default;
};

struct Kernel {
  std::string object;                   // relocatable object file of the host, defining kKernelSymbol
  std::vector<BufferSpec> buffers;
  std::uint64_t scratch_bytes = 0;
  std::uint32_t threads = 1;            // that its parallel loops are split over; 1: it has none
  std::vector<std::string> no_effect;   // annotations that changed nothing: "L3 vectorize"
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

struct CompileOptions {
  std::uint32_t threads = 1;  // that loops annotated `thread` may be split over
};

// Makes kernels. One object belongs to one thread of one compiler child.
class Compiler {
 public:
  virtual ~Compiler() = default;
  // COMPILE_ERROR, LIMIT_UNROLL, LIMIT_FOOTPRINT or UNSUPPORTED where the tree cannot be compiled.
  virtual std::expected<Kernel, Failure> Compile(const looptree::LoopTree& tree,
                                                 const CompileOptions& options = {}) = 0;
};

}  // namespace loopfleet::worker
