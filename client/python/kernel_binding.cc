#include "client/python/kernel_binding.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "client/python/conversion.h"
#include "common/looptree/text/text.h"
#include "kernel/tensor_backend.h"
#include "tensor/session.h"
#include "worker/portable_c/c_source.h"

namespace loopfleet::python {

namespace nb = nanobind;
using namespace nb::literals;

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
      "use_interpreter", [] { tensor::Session::Of().SetBackend(tensor::InterpretedBackend()); },
      "Tensors are computed by walking their loop trees: slow, needs no compiler.");
  module.def("backend_name", [] { return tensor::Session::Of().backend().name(); });
  module.def(
      "c_source_of",
      [](const std::string& ir) {
        const auto tree = looptree::ParseIr(ir);
        if (!tree) Raise(ToFailure(tree.error()));
        const auto source = worker::CSourceOf(*tree);
        if (!source) Raise(source.error());
        return *source;
      },
      "ir"_a, "The tree as one C file.");
}

}  // namespace loopfleet::python
