#include "bench/rigs/compiled_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/random.h"

namespace loopfleet::bench {
namespace {

Result<void> CompareOutputs(const Kernel& kernel, const std::vector<float*>& pointers,
                            const looptree::Reference& reference) {
  std::size_t output = 0;
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
    if (kernel.buffers[i].role != BufferSpec::Role::kOutput) continue;
    const std::vector<double>& values = reference.outputs[output];
    const std::vector<double>& tolerance = reference.tolerance[output];
    for (std::size_t j = 0; j < values.size(); ++j) {
      const double allowed = tolerance.empty() ? 0 : tolerance[j];
      if (!(std::abs(pointers[i][j] - values[j]) <= allowed)) {
        return Fail(ErrorKind::kCorrupt, fmt::format("output {} element {}: {} instead of {}",
                                                     output, j, pointers[i][j], values[j]));
      }
    }
    ++output;
  }
  return {};
}

}  // namespace

Result<Toolchain> MakeToolchain(worker::CpuIsa isa) {
  Toolchain tools;
  LF_TRY(tools.compiler, worker::CpuCompiler::Create({.isa = isa}));
  tools.linker = std::make_unique<worker::Linker>();
  return tools;
}

Expected::Expected(const looptree::Program& program) {
  SplitMix64 random(1);
  for (const looptree::NodeId node : program.inputs) {
    looptree::Tensor tensor(static_cast<std::size_t>(program.ElementCount(node)));
    for (float& value : tensor) value = static_cast<float>(random.Below(5)) - 2;
    inputs.push_back(std::move(tensor));
  }
  reference = looptree::Evaluate(program, inputs);
}

Result<CompiledTree> CompiledTree::Make(Toolchain& tools, const looptree::LoopTree& tree,
                                        const Expected& expected, const ThreadPool* pool) {
  const auto kernel =
      tools.compiler->Compile(tree, {.threads = pool == nullptr ? 1 : pool->size()});
  if (!kernel) return Fail(ErrorKind::kInvalid, kernel.error().message);
  CompiledTree made;
  LF_TRY(made.linked_, tools.linker->Link(kernel->object));
  made.function_ = made.linked_->function();
  for (const BufferSpec& spec : kernel->buffers) {
    const std::size_t index = made.buffers_.size();
    made.buffers_.push_back(
        MakeBuffer(spec.element_count, std::numeric_limits<float>::quiet_NaN()));
    made.pointers_.push_back(made.buffers_.back().get());
    if (spec.role == BufferSpec::Role::kInput) {
      std::ranges::copy(expected.inputs[index], made.pointers_.back());
    }
  }
  if (pool != nullptr) {
    const void* behind = pool->parallel_for();
    made.pointers_.push_back(static_cast<float*>(const_cast<void*>(behind)));
  }
  made.Run();
  LF_TRY_VOID(CompareOutputs(*kernel, made.pointers_, expected.reference));
  return made;
}

}  // namespace loopfleet::bench
