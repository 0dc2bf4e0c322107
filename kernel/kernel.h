#pragma once
// Kernel: a compiled loop tree, made by a compiler child.
//
// The calling convention, the same for every backend on the CPU:
//   extern "C" void loopfleet_kernel(float* const* buffers);
// `buffers` has one pointer for each of Kernel::buffers, in that order: the program's inputs, its
// outputs, then scratch. Tensors are dense and row-major over the node's dims; outputs and scratch
// are 64-byte aligned, inputs at least 4-byte aligned. A kernel writes every element of its
// outputs, never writes its inputs, and keeps no state between runs.
//
// For a kernel with `threads` > 1 another pointer follows: to a ParallelFor
// (kernel/parallel_for.h), which runs its parallel loops. Other kernels do not read it.

#include <array>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/result.h"
#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/outside_functions.h"
#include "kernel/profile_map.h"

namespace loopfleet {

inline constexpr const char* kKernelSymbol = "loopfleet_kernel";
using KernelFunction = void (*)(float* const* buffers);

struct BufferSpec {
  enum class Role : std::uint8_t { kInput, kOutput, kScratch };
  Role role = Role::kInput;
  std::uint64_t element_count = 0;  // float32
  friend bool operator==(const BufferSpec&, const BufferSpec&) = default;
};

template <>
struct EnumNames<BufferSpec::Role> {
  static constexpr std::array kAll = {NamedValue{BufferSpec::Role::kInput, "input"},
                                      NamedValue{BufferSpec::Role::kOutput, "output"},
                                      NamedValue{BufferSpec::Role::kScratch, "scratch"}};
};

struct Kernel {
  std::string object;  // relocatable object file of the host, defining kKernelSymbol
  std::vector<BufferSpec> buffers;
  std::uint64_t scratch_bytes = 0;
  std::uint32_t threads = 1;  // that share its parallel loops; 1: it has none
  // Of the widest vectors that it computes with, for which processors lower their clock; 0: none,
  // or not known.
  std::uint32_t vector_bytes = 0;
  std::vector<std::string> notes;  // see Evaluation::notes
  ProfileMap profile;              // of what CompileOptions::instrumentation asked for
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

struct CompileOptions {
  std::uint32_t threads = 1;  // that loops annotated `thread` may be split over
  Instrumentation instrumentation = {};
};

// The machine code of a kernel, linked for one address: copied there unchanged and called at its
// entry.
struct CodeImage {
  std::string bytes;
  std::uint64_t entry = 0;  // offset of kKernelSymbol in `bytes`
  friend bool operator==(const CodeImage&, const CodeImage&) = default;
};

// Where code is linked for.
struct CodePlace {
  std::uint64_t address = 0;  // the start of a page
  std::size_t max_bytes = 0;
  const OutsideFunctions* outside = nullptr;  // null: those of the linking process
};

// Compiles kernels. One object belongs to one thread of one compiler child.
class Compiler {
 public:
  virtual ~Compiler() = default;
  // COMPILE_ERROR, LIMIT_FOOTPRINT or UNSUPPORTED if the tree cannot be compiled.
  virtual std::expected<Kernel, Failure> Compile(const looptree::LoopTree& tree,
                                                 const CompileOptions& options = {}) = 0;
};

// Links kernels. One object belongs to one thread of one compiler child.
class CodeLinker {
 public:
  virtual ~CodeLinker() = default;
  // kCorrupt if `object` cannot be linked, kFull if the code is longer than the place.
  virtual Result<CodeImage> LinkAt(std::string_view object, const CodePlace& place) = 0;
};

}  // namespace loopfleet
