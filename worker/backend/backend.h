#pragma once
// Backend: what a kind of device brings to a worker: how to compile a tree and how to lay the
// result out as code. Both run in compiler children only; the daemon holds the recipes and the
// facts, and never calls them.

#include <functional>
#include <memory>

#include "common/job/hardware_facts.h"
#include "worker/backend/kernel.h"

namespace loopfleet::worker {

struct Backend {
  CompilerFacts compiler;
  // Both called once, in the fork server; every compiler child starts with a copy of what they
  // made. Functions that code calls outside itself have the same addresses in every child of the
  // fork server, so an image that was linked in one of them runs in all.
  std::function<std::unique_ptr<Compiler>()> make_compiler;
  std::function<std::unique_ptr<CodeLinker>()> make_linker;
};

}  // namespace loopfleet::worker
