#pragma once
// A peer of `evaluations`: evaluates a schedule through a C compiler, as LoopTune's "cpp" backend
// and others do. Writes the loops as C, runs `cc -O3 -shared`, opens the library and times it for
// about 10 ms. Without verification or isolation, so the comparison favours the peer.

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/rigs/aligned_buffer.h"
#include "common/base/result.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::bench {

// The nodes of a program that is one product, a sum of left * right; nullopt for other programs.
struct Product {
  looptree::NodeId left = 0;
  looptree::NodeId right = 0;
  looptree::NodeId multiply = 0;
  looptree::NodeId sum = 0;
};
std::optional<Product> FindProduct(const looptree::Program& program);

// The elements of its dim that one iteration of each loop covers: the product, with tails, of the
// deeper loops over the same dim.
std::vector<std::int64_t> Strides(std::span<const looptree::LoopSpec> loops);

// The loops of the tree's product, with their order and splits, as a C function
// `void kernel(const float*, const float*, float*)`. kInvalid: the program is no matrix product.
Result<std::string> MatmulInC(const looptree::LoopTree& tree);

// The compiled and loaded function with its own buffers.
class CKernel {
 public:
  // kSystem if cc fails; kCorrupt if a run shows that the loops do not cover each element once.
  static Result<CKernel> Make(const looptree::LoopTree& tree, const std::filesystem::path& dir);

  void Run() { function_(left_.get(), right_.get(), out_.get()); }

 private:
  struct CloseLibrary {
    void operator()(void* library) const;
  };
  std::unique_ptr<void, CloseLibrary> library_;
  void (*function_)(const float*, const float*, float*) = nullptr;
  Buffer left_;
  Buffer right_;
  Buffer out_;
};

// Evaluates the tree and returns the nanoseconds of one run. Temporary files lie in `dir`.
Result<double> EvaluateInC(const looptree::LoopTree& tree, const std::filesystem::path& dir);

}  // namespace loopfleet::bench
