#pragma once
// Backend: how a kind of device compiles a tree and lays the result out as code. Compiler and
// linker run only in compiler children; the daemon holds the factories and the compiler's facts,
// and never uses the objects.

#include <functional>
#include <memory>

#include "common/job/hardware_facts.h"
#include "kernel/kernel.h"

namespace loopfleet::worker {

struct Backend {
  CompilerFacts compiler;
  // Both are called once, in the fork server; every compiler child starts with a copy of the
  // objects. External functions have the same addresses in every child of the fork server, so an
  // image linked in one of them runs in all.
  std::function<std::unique_ptr<Compiler>()> make_compiler;
  std::function<std::unique_ptr<CodeLinker>()> make_linker;
};

}  // namespace loopfleet::worker
