#pragma once
// The peer of `evaluations`: how a schedule is evaluated where its backend is a C compiler
// (LoopTune's "cpp" backend and others): write the loops as C, run `cc -O3 -shared`, open the
// library, time it for about 10 ms. Nothing is verified, nothing is kept apart: the peer is given
// every advantage.

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

// The nodes of a program's one product, a sum of left * right; nullopt: it is another program.
struct Product {
  looptree::NodeId left = 0;
  looptree::NodeId right = 0;
  looptree::NodeId multiply = 0;
  looptree::NodeId sum = 0;
};
std::optional<Product> FindProduct(const looptree::Program& program);

// What one iteration of each loop covers of its dim: the product, with tails, of the deeper ones.
std::vector<std::int64_t> Strides(std::span<const looptree::LoopSpec> loops);

// The loops of the tree's one product, in their order and with their splits, as a function
// `void kernel(const float*, const float*, float*)`. kInvalid: the program is no matrix product.
Result<std::string> MatmulInC(const looptree::LoopTree& tree);

// The function, compiled and loaded, with buffers of its own.
class CKernel {
 public:
  // kSystem if cc fails; kCorrupt if one run shows that the loops do not cover everything once.
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

// Evaluates it the peer's way; gives nanoseconds for one run. Files go to `dir`, and away again.
Result<double> EvaluateInC(const looptree::LoopTree& tree, const std::filesystem::path& dir);

}  // namespace loopfleet::bench
