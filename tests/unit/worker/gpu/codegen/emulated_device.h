#pragma once
// EmulatedDevice: runs a GPU kernel on the CPU. The kernel's functions are compiled for the host,
// and each thread of a block is a fibre. Threads run in a new random order between barriers, and
// blocks in random order, so that code which relies on an order that CUDA does not guarantee fails
// here. Used by one thread.

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
  // Barriers as emitted, or deliberately wrong. kForgotten: no barriers. kApart: odd threads wait
  // at a separate barrier.
  enum class Waiting { kAsAsked, kForgotten, kApart };
  explicit EmulatedDevice(Waiting waiting = Waiting::kAsAsked);
  ~EmulatedDevice();

  // The outputs of a run. Outputs, scratch and shared memory are full of NaN before it. Appends to
  // `problems`: writes outside the kernel's buffers, and threads that miss a barrier or wait at
  // different ones.
  std::expected<std::vector<looptree::Tensor>, Failure> Run(
      const looptree::LoopTree& tree, const std::vector<looptree::Tensor>& inputs,
      std::uint64_t seed, std::string& problems);

  // Empty if the result matches the reference and the interpreter.
  std::string Check(const looptree::LoopTree& tree, const std::vector<looptree::Tensor>& inputs,
                    const looptree::Reference& reference, std::uint64_t seed);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::worker
