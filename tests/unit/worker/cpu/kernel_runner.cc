#include "tests/unit/worker/cpu/kernel_runner.h"

#include "common/base/check.h"
#include "common/looptree/text/text.h"
#include "tests/unit/worker/lowering/guarded_run.h"

namespace loopfleet::worker {

using looptree::LoopTree;
using looptree::Tensor;

KernelRunner::KernelRunner(CpuIsa isa) {
  auto compiler = CpuCompiler::Create({.isa = isa});
  LF_CHECK(compiler.has_value(), "{}", compiler.error().message);
  compiler_ = *std::move(compiler);
  linker_ = std::make_unique<Linker>();
}

Kernel KernelRunner::Compile(const LoopTree& tree) {
  auto kernel = compiler_->Compile(tree);
  LF_CHECK(kernel.has_value(), "{}", kernel.error().message);
  return *std::move(kernel);
}

std::vector<Tensor> KernelRunner::Run(const Kernel& kernel, const std::vector<Tensor>& inputs,
                                      std::string& problems) {
  auto linked = linker_->Link(kernel.object);
  LF_CHECK(linked.has_value(), "{}", linked.error().message);
  return RunGuarded((*linked)->function(), kernel.buffers, inputs, problems, pool_.parallel_for());
}

std::string KernelRunner::Check(const LoopTree& tree, std::uint64_t seed, Oracles oracles) {
  const auto kernel = compiler_->Compile(tree);
  if (!kernel.has_value()) return kernel.error().message + "\n" + TreeText(tree, {});
  ++checked_;
  const std::vector<Tensor> inputs = SmallIntegers(tree.program(), seed);
  std::string problems;
  const std::vector<Tensor> outputs = Run(*kernel, inputs, problems);
  const looptree::Reference reference = looptree::Evaluate(tree.program(), inputs);
  problems += Difference(outputs, reference);
  if (oracles == Oracles::kBoth) {
    problems += Difference(outputs, looptree::Interpret(tree, inputs), reference);
  }
  return problems.empty() ? "" : problems + "\n" + TreeText(tree, {});
}

bool HostRuns(CpuIsa isa) { return SupportOf(isa).runs_here(); }

}  // namespace loopfleet::worker
