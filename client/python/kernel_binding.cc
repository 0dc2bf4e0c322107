#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/python/array_exchange.h"
#include "client/python/bindings.h"
#include "client/python/conversion.h"
#include "common/looptree/text/text.h"
#include "kernel/tensor_backend.h"
#include "tensor/session.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/portable_c/c_source.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

looptree::LoopTree Parsed(const std::string& ir) {
  auto tree = looptree::ParseIr(ir);
  if (!tree) Raise(ToFailure(tree.error()));
  return *std::move(tree);
}

// One tree's code on the arrays of its caller: the inputs of its program, then its outputs.
class TreeFunction {
 public:
  TreeFunction(const std::string& ir, bool interpreted)
      : tree_(Parsed(ir)),
        code_(interpreted ? tensor::InterpretedBackend()->Compile(tree_)
                          : tensor::Session::Of().backend().Compile(tree_)) {}

  std::size_t input_count() const { return tree_.program().inputs.size(); }

  void Call(const nb::list& arrays) const {
    const looptree::Program& program = tree_.program();
    const std::size_t wanted = program.inputs.size() + program.outputs.size();
    if (arrays.size() != wanted) {
      throw nb::type_error(fmt::format("{} arrays are wanted: {} inputs, then {} outputs; not {}",
                                       wanted, program.inputs.size(), program.outputs.size(),
                                       arrays.size())
                               .c_str());
    }
    std::vector<ForeignMemory> memory(wanted);
    std::vector<const float*> inputs;
    std::vector<std::shared_ptr<tensor::Buffer>> results;
    std::vector<float*> outputs;
    for (std::size_t i = 0; i < wanted; ++i) {
      const bool is_input = i < program.inputs.size();
      const looptree::NodeId node =
          is_input ? program.inputs[i] : program.outputs[i - program.inputs.size()];
      const auto count = static_cast<std::size_t>(program.ElementCount(node));
      const int flags = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (is_input ? 0 : PyBUF_WRITABLE);
      if (!memory[i].Get(arrays[i].ptr(), flags)) throw nb::python_error();
      const Py_buffer& view = memory[i].view();
      if (!memory[i].IsFloat32() || static_cast<std::size_t>(view.len) != count * sizeof(float)) {
        throw tensor::TensorError(
            tensor::TensorError::Kind::kShape,
            fmt::format("array {}: {} elements of float32 are wanted", i, count));
      }
      if (is_input) {
        inputs.push_back(static_cast<const float*>(view.buf));
      } else {
        results.push_back(tensor::Buffer::Make(count));  // aligned, and no input
        outputs.push_back(results.back()->data());
      }
    }
    {
      const nb::gil_scoped_release unlocked;
      code_->Run(inputs.data(), outputs.data());
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::memcpy(memory[inputs.size() + i].view().buf, results[i]->data(),
                  results[i]->count() * sizeof(float));
    }
  }

 private:
  const looptree::LoopTree tree_;
  const std::shared_ptr<tensor::Runnable> code_;
};

// (node, elements of the buffer for its result), of the nodes that have one.
std::vector<std::pair<looptree::NodeId, std::int64_t>> AllocationsOf(const std::string& ir) {
  const looptree::LoopTree tree = Parsed(ir);
  std::vector<std::pair<looptree::NodeId, std::int64_t>> allocations;
  const looptree::Program& program = tree.program();
  for (looptree::NodeId node = 0; node < program.nodes.size(); ++node) {
    if (!tree.LeafOf(node)) continue;
    std::int64_t elements = 1;
    for (const looptree::DimId dim : program.nodes[node].dims) {
      const bool is_whole = program.nodes[node].op == looptree::Op::kWrite;
      elements *= is_whole ? program.dims[dim].size : tree.BufferExtent(node, dim);
    }
    allocations.emplace_back(node, elements);
  }
  return allocations;
}

}  // namespace

void BindKernels(nb::module_& module) {
  module.def(
      "use_cpu",
      [](std::string program, std::string memory, std::uint32_t threads, bool verify) {
        tensor::Session::Of().SetBackend(CpuTensorBackend(
            {.program = std::move(program), .memory = std::move(memory), .threads = threads},
            verify ? VerifyWish::kOnce : VerifyWish::kNever));
      },
      "program"_a, "memory"_a, "threads"_a, "verify"_a,
      "Tensors are compiled by `program`, loopfleet-worker, and run in this process.");
  module.def(
      "use_isolated",
      [](std::string program, std::uint32_t threads) {
        tensor::Session::Of().SetBackend(
            IsolatedTensorBackend({.program = std::move(program), .threads = threads}));
      },
      "program"_a, "threads"_a,
      "Tensors are compiled by `program`, loopfleet-worker, and run in a sandboxed child of it.");
  module.def(
      "use_interpreter", [] { tensor::Session::Of().SetBackend(tensor::InterpretedBackend()); },
      "Tensors are computed by walking their loop trees: slow, needs no compiler.");
  module.def("backend_name", [] { return tensor::Session::Of().backend().name(); });
  module.def(
      "c_source_of",
      [](const std::string& ir) {
        const auto source = worker::CSourceOf(Parsed(ir));
        if (!source) Raise(source.error());
        return source->text;
      },
      "ir"_a, "The tree as one C file.");
  module.def(
      "kernel_scratch_bytes",
      [](const std::string& ir) {
        const auto plan = worker::PlanKernel(Parsed(ir), worker::PlanLimits());
        if (!plan) Raise(plan.error());
        return plan->scratch_bytes;
      },
      "ir"_a, "The scratch memory of the tree's kernel, where buffers that never meet share.");
  nb::class_<TreeFunction>(module, "TreeFunction", "A tree's code, called with arrays.")
      .def(nb::init<const std::string&, bool>(), "ir"_a, "interpreted"_a = false)
      .def_prop_ro("input_count", &TreeFunction::input_count)
      .def("__call__", &TreeFunction::Call, "arrays"_a,
           "Arrays of float32 in C order: the program's inputs, then its outputs, which are "
           "written.");
  module.def("allocations_of", &AllocationsOf, "ir"_a,
             "(node, elements of the buffer for its result) of a tree.");
}

}  // namespace loopfleet::python
