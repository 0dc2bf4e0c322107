#pragma once
// FuzzCheck: answers a FuzzCase as a worker would (rebuild, compile, link, run) and says what, if
// anything, was wrong with the answer.

#include <string>
#include <vector>

#include "tests/unit/worker/cpu/kernel_runner.h"
#include "tests/unit/worker/lowering/fuzz_case.h"

namespace loopfleet::worker {

class FuzzCheck {
 public:
  // Names of the instruction sets that this host runs, and that differ: without "host" if that is
  // only another name for one of the others.
  static std::vector<std::string> IsasOfHost();

  // "" if all is well. Compared with what the program means and with the tree run loop by loop.
  std::string Check(const FuzzCase& fuzz);
  int refused() const { return refused_; }  // cases unrolled too far to be compiled

 private:
  std::string CheckInC(const looptree::LoopTree& tree, const CachedReference::Known& known);

  KernelRunners runners_;
  CachedReference references_;
  int refused_ = 0;
};

}  // namespace loopfleet::worker
