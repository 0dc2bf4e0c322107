#include "tests/unit/worker/cpu/kernel_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/looptree/text.h"

namespace loopfleet::worker {
namespace {

using looptree::LoopTree;
using looptree::Tensor;

constexpr std::size_t kGuard = 64;        // floats before and behind each buffer
constexpr float kGuardValue = -12345.0F;  // no result of ours

// A buffer between guards, aligned as worker/kernel.h promises.
class GuardedBuffer {
 public:
  GuardedBuffer(std::size_t count, float fill)
      : count_(count), memory_(count + 2 * kGuard + 16, kGuardValue) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data() + kGuard);
    start_ = kGuard + (64 - address % 64) % 64 / sizeof(float);
    std::fill_n(data(), count, fill);
  }
  float* data() { return memory_.data() + start_; }
  std::size_t count() const { return count_; }
  bool GuardsHold() const {
    const auto holds = [](float value) { return value == kGuardValue; };
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(start_);
    return std::all_of(memory_.begin(), begin, holds) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(count_), memory_.end(), holds);
  }

 private:
  std::size_t count_;
  std::vector<float> memory_;
  std::size_t start_ = 0;
};

std::string Compare(const std::vector<Tensor>& outputs, const looptree::Reference& reference) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].size() != reference.outputs[i].size()) return "output of another size";
    for (std::size_t j = 0; j < outputs[i].size(); ++j) {
      const double tolerance = reference.tolerance[i].empty() ? 0 : reference.tolerance[i][j];
      const double expected = reference.outputs[i][j];
      if (!(std::abs(outputs[i][j] - expected) <= tolerance)) {  // also catches NaN
        return fmt::format("output {} element {}: {} instead of {} +- {}", i, j, outputs[i][j],
                           expected, tolerance);
      }
    }
  }
  return "";
}

}  // namespace

std::vector<Tensor> SmallIntegers(const looptree::Program& program, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<Tensor> inputs;
  for (looptree::NodeId node : program.inputs) {
    Tensor tensor(static_cast<std::size_t>(program.ElementCount(node)));
    for (float& value : tensor) value = static_cast<float>(random.Below(7)) - 3;
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

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
  std::vector<GuardedBuffer> buffers;
  for (const BufferSpec& spec : kernel.buffers) {
    buffers.emplace_back(spec.element_count, std::numeric_limits<float>::quiet_NaN());
  }
  std::vector<float*> pointers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    pointers.push_back(buffers[i].data());
    if (i < inputs.size()) std::ranges::copy(inputs[i], buffers[i].data());
  }
  (*linked)->function()(pointers.data());
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    GuardedBuffer& buffer = buffers[i];
    if (!buffer.GuardsHold()) problems += fmt::format("wrote beside buffer {}\n", i);
    const Tensor content(buffer.data(), buffer.data() + buffer.count());
    if (i < inputs.size() && content != inputs[i]) problems += fmt::format("wrote input {}\n", i);
    if (kernel.buffers[i].role == BufferSpec::Role::kOutput) outputs.push_back(content);
  }
  return outputs;
}

std::string KernelRunner::Check(const LoopTree& tree, std::uint64_t seed, Oracles oracles) {
  const auto kernel = compiler_->Compile(tree);
  if (!kernel.has_value()) {
    if (kernel.error().code == FailureCode::kLimitUnroll) return "";
    return kernel.error().message + "\n" + TreeText(tree, {});
  }
  ++checked_;
  const std::vector<Tensor> inputs = SmallIntegers(tree.program(), seed);
  std::string problems;
  const std::vector<Tensor> outputs = Run(*kernel, inputs, problems);
  looptree::Reference reference = looptree::Evaluate(tree.program(), inputs);
  problems += Compare(outputs, reference);
  if (oracles == Oracles::kBoth) {
    // The interpreter rounds as well, within the same bound round the same value.
    for (std::vector<double>& tolerance : reference.tolerance) {
      for (double& bound : tolerance) bound *= 2;
    }
    const std::vector<Tensor> interpreted = looptree::Interpret(tree, inputs);
    for (std::size_t i = 0; i < interpreted.size(); ++i) {
      reference.outputs[i].assign(interpreted[i].begin(), interpreted[i].end());
    }
    const std::string difference = Compare(outputs, reference);
    if (!difference.empty()) problems += "interpreter: " + difference;
  }
  return problems.empty() ? "" : problems + "\n" + TreeText(tree, {});
}

bool HostRuns(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa == CpuIsa::kAvx512) return __builtin_cpu_supports("x86-64-v4") != 0;
  if (isa == CpuIsa::kAvx2) return __builtin_cpu_supports("x86-64-v3") != 0;
  return true;
#else
  return isa == CpuIsa::kHost || isa == CpuIsa::kBaseline;
#endif
}

}  // namespace loopfleet::worker
