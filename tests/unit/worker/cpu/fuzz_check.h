#pragma once
// FuzzCheck: evaluates a FuzzCase as a worker would (rebuild, compile, link, run) and reports what
// was wrong with the result. Used by one thread.

#include <string>
#include <vector>

#include "tests/unit/worker/cpu/kernel_runner.h"
#include "tests/unit/worker/lowering/fuzz_case.h"

namespace loopfleet::worker {

class FuzzCheck {
 public:
  // Names of the instruction sets that this host runs, "host" included.
  static std::vector<std::string> IsasOfHost();

  // Empty if the result matches both the reference and the interpreter.
  std::string Check(const FuzzCase& fuzz);

 private:
  std::string CheckInC(const looptree::LoopTree& tree, const CachedReference::Known& known);

  KernelRunners runners_;
  CachedReference references_;
};

}  // namespace loopfleet::worker
