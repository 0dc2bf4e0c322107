#pragma once
// EmulatedDevice: runs a GPU kernel on the CPU: the same functions, for the host's instruction set,
// each thread of a block a fibre of its own. The threads run in a new random order from each place
// where they wait to the next, the blocks in random order too: code that relies on an order that
// CUDA does not promise computes something else here.

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/gpu/codegen/device_plan.h"

namespace loopfleet::worker {

class EmulatedDevice {
 public:
  // kForgotten: a device on which no thread waits for another, to see that kernels which have to
  // wait go wrong without. kApart: every other thread waits in a place of its own.
  enum class Waiting { kAsAsked, kForgotten, kApart };
  explicit EmulatedDevice(Waiting waiting = Waiting::kAsAsked);
  ~EmulatedDevice();

  // Outputs of a run that starts from outputs, scratch and shared memory full of NaN. Appends to
  // `problems`: memory written that is not the kernel's, threads that do not all wait, or
  // not in the same place.
  std::expected<std::vector<looptree::Tensor>, Failure> Run(
      const looptree::LoopTree& tree, const std::vector<looptree::Tensor>& inputs,
      std::uint64_t seed, std::string& problems);

  // "" if the tree, run here, gives what the program means and what the interpreter gives, or is
  // refused for being unrolled too far.
  std::string Check(const looptree::LoopTree& tree, const std::vector<looptree::Tensor>& inputs,
                    const looptree::Reference& reference, std::uint64_t seed);
  int refused() const { return refused_; }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  int refused_ = 0;
};

}  // namespace loopfleet::worker
