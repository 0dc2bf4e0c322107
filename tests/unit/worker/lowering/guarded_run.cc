#include "tests/unit/worker/lowering/guarded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/random.h"

namespace loopfleet::worker {
namespace {

using looptree::Tensor;

constexpr std::size_t kGuard = 64;        // floats before and behind each buffer
constexpr float kGuardValue = -12345.0F;  // no test computes this

// A buffer between guards, aligned as kernel/kernel.h promises.
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

std::vector<Tensor> RunGuarded(KernelFunction function, const std::vector<BufferSpec>& specs,
                               const std::vector<Tensor>& inputs, std::string& problems,
                               const void* behind) {
  std::vector<GuardedBuffer> buffers;
  for (const BufferSpec& spec : specs) {
    buffers.emplace_back(spec.element_count, std::numeric_limits<float>::quiet_NaN());
  }
  std::vector<float*> pointers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    pointers.push_back(buffers[i].data());
    if (i < inputs.size()) std::ranges::copy(inputs[i], buffers[i].data());
  }
  pointers.push_back(static_cast<float*>(const_cast<void*>(behind)));
  function(pointers.data());
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    GuardedBuffer& buffer = buffers[i];
    if (!buffer.GuardsHold()) problems += fmt::format("wrote beside buffer {}\n", i);
    const Tensor content(buffer.data(), buffer.data() + buffer.count());
    if (i < inputs.size() && content != inputs[i]) problems += fmt::format("wrote input {}\n", i);
    if (specs[i].role == BufferSpec::Role::kOutput) outputs.push_back(content);
  }
  return outputs;
}

std::string Difference(const std::vector<Tensor>& outputs, const looptree::Reference& reference) {
  for (std::size_t i = 0; i < reference.outputs.size(); ++i) {
    if (outputs[i].size() != reference.outputs[i].size()) return "output of another size";
    for (std::size_t j = 0; j < outputs[i].size(); ++j) {
      const double tolerance = reference.tolerance[i].empty() ? 0 : reference.tolerance[i][j];
      const double expected = reference.outputs[i][j];
      if (outputs[i][j] == expected) continue;                   // infinities, too
      if (!(std::abs(outputs[i][j] - expected) <= tolerance)) {  // also catches NaN
        return fmt::format("output {} element {}: {} instead of {} +- {}", i, j, outputs[i][j],
                           expected, tolerance);
      }
    }
  }
  return "";
}

std::string Difference(const std::vector<Tensor>& outputs, const std::vector<Tensor>& other,
                       const looptree::Reference& reference) {
  for (std::size_t i = 0; i < other.size(); ++i) {
    if (outputs[i].size() != other[i].size()) return "output of another size";
    for (std::size_t j = 0; j < outputs[i].size(); ++j) {
      // Both round, each within this bound of the same value.
      const double tolerance = reference.tolerance[i].empty() ? 0 : 2 * reference.tolerance[i][j];
      if (outputs[i][j] == other[i][j]) continue;
      if (!(std::abs(outputs[i][j] - other[i][j]) <= tolerance)) {
        return fmt::format("output {} element {}: {}, interpreted {} +- {}", i, j, outputs[i][j],
                           other[i][j], tolerance);
      }
    }
  }
  return "";
}

}  // namespace loopfleet::worker
