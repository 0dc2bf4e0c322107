#pragma once
// Backend: what a kind of device brings to a worker: how to compile a tree and how to load the
// result. Both run in children only; the daemon holds the recipes and the facts, and never calls
// them.

#include <functional>
#include <memory>
#include <string_view>

#include "common/base/result.h"
#include "common/job/hardware_facts.h"
#include "worker/kernel.h"

namespace loopfleet::worker {

// A kernel that can be called, for as long as the object lives.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  virtual KernelFunction function() const = 0;
};

struct Backend {
  CompilerFacts compiler;
  // Called once, in the nursery; every compiler child starts with a copy of what it made.
  std::function<std::unique_ptr<Compiler>()> make_compiler;
  // Called in executor children with Kernel::object.
  std::function<Result<std::unique_ptr<LoadedKernel>>(std::string_view object)> load;
};

}  // namespace loopfleet::worker
