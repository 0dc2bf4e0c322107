#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client/python/bindings.h"
#include "common/looptree/text/text.h"
#include "kernel/tensor_backend.h"
#include "tensor/buffer.h"
#include "tensor/tensor_error.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using tensor::Buffer;
using Clock = std::chrono::steady_clock;

double NanosSince(Clock::time_point since) {
  return std::chrono::duration<double, std::nano>(Clock::now() - since).count();
}

// A program's tensors: inputs of numbers between 0 and 1, and room for the outputs.
class Arguments {
 public:
  explicit Arguments(const looptree::Program& program) {
    std::uint32_t state = 1;
    for (const looptree::NodeId node : program.inputs) {
      const Buffer& buffer = Add(program, node);
      for (std::size_t i = 0; i < buffer.count(); ++i) {
        state = state * 1664525U + 1013904223U;  // Numerical Recipes' generator
        buffer.data()[i] = static_cast<float>(state >> 8) * 0x1p-24F;
      }
      inputs_.push_back(buffer.data());
    }
    for (const looptree::NodeId node : program.outputs) {
      outputs_.push_back(Add(program, node).data());
    }
  }
  void Call(tensor::Runnable& code) const { code.Run(inputs_.data(), outputs_.data()); }

 private:
  const Buffer& Add(const looptree::Program& program, looptree::NodeId node) {
    buffers_.push_back(Buffer::Make(static_cast<std::size_t>(program.ElementCount(node))));
    return *buffers_.back();
  }

  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::vector<const float*> inputs_;
  std::vector<float*> outputs_;
};

// The shortest time of a call, in nanoseconds, over batches that are long for the clock. The first
// call meets cold caches and fresh pages, so kernels about as long as the budget run three times.
double BestOf(tensor::Runnable& code, const Arguments& arguments, double budget_ns) {
  constexpr double kBatchNs = 20'000;
  constexpr int kFewBatches = 3;
  constexpr double kMostBudgets = 50;
  const auto timed = [&](std::uint64_t calls) {
    const auto since = Clock::now();
    for (std::uint64_t i = 0; i < calls; ++i) arguments.Call(code);
    return NanosSince(since) / static_cast<double>(calls);
  };
  const auto begun = Clock::now();
  double best_ns = timed(1);
  for (int batches = 1;; ++batches) {
    const double since = NanosSince(begun);
    if (since > kMostBudgets * budget_ns || (since > budget_ns && batches >= kFewBatches)) break;
    best_ns = std::min(best_ns, timed(1 + static_cast<std::uint64_t>(kBatchNs / best_ns)));
  }
  return best_ns;
}

class LocalTimer {
 public:
  LocalTimer(std::string program, std::string memory, std::uint32_t threads, bool verify)
      : backend_(CpuTensorBackend(
            {.program = std::move(program), .memory = std::move(memory), .threads = threads},
            verify ? VerifyWish::kOnce : VerifyWish::kNever)) {}

  double BestNs(const std::string& ir, double budget_ms) {
    const nb::gil_scoped_release unlocked;
    const std::lock_guard lock(mutex_);
    auto tree = looptree::ParseIr(ir);
    if (!tree) {
      throw tensor::TensorError(tensor::TensorError::Kind::kSchedule, tree.error().message);
    }
    const std::shared_ptr<tensor::Runnable> code = backend_->Compile(*tree);
    return BestOf(*code, Arguments(tree->program()), budget_ms * 1e6);
  }

 private:
  std::mutex mutex_;  // of backend_
  const std::shared_ptr<tensor::Backend> backend_;
};

}  // namespace

void BindLocalTimer(nb::module_& module) {
  nb::class_<LocalTimer>(module, "LocalTimer",
                         "Times trees in this process, with a compiler of its own. Other Python "
                         "threads run meanwhile.")
      .def(nb::init<std::string, std::string, std::uint32_t, bool>(), "program"_a, "memory"_a,
           "threads"_a, "verify"_a)
      .def("best_ns", &LocalTimer::BestNs, "ir"_a, "budget_ms"_a,
           "The shortest call within the budget, in nanoseconds. KernelError: it has no code.");
}

}  // namespace loopfleet::python
