#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "client/python/array_exchange.h"
#include "client/python/bindings.h"
#include "tensor/tensor.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using tensor::Buffer;
using tensor::Session;
using tensor::Tensor;
using tensor::TensorError;
using Kind = TensorError::Kind;
using Shape = Tensor::Shape;

// A program with its inputs open: the callable that lt.compile gives.
class CompiledTensor {
 public:
  CompiledTensor(const Tensor& tensor, const std::vector<Tensor>& inputs)
      : tensor_(tensor), plan_(Session::Of().PlanOf(*tensor.node())) {
    const std::vector<tensor::Node*> nodes = tensor::InOrder(*tensor.node());
    for (const Tensor& input : inputs) {
      if (input.node()->kind != tensor::Node::Kind::kLeaf) {
        throw TensorError(Kind::kTensor, fmt::format("compile: input {} is no leaf",
                                                     tensor::Describe(*input.node())));
      }
      const auto leaf = std::ranges::find_if(
          plan_->leaves, [&](std::uint32_t place) { return nodes[place] == input.node().get(); });
      if (leaf == plan_->leaves.end()) {
        throw TensorError(Kind::kTensor, fmt::format("compile: {} does not depend on the input {}",
                                                     tensor::Describe(*tensor.node()),
                                                     tensor::Describe(*input.node())));
      }
      const auto number = static_cast<std::size_t>(leaf - plan_->leaves.begin());
      if (std::ranges::find(numbers_, number) != numbers_.end()) {
        throw TensorError(Kind::kTensor, fmt::format("compile: input {} is given twice",
                                                     tensor::Describe(*input.node())));
      }
      numbers_.push_back(number);
    }
    for (const std::uint32_t place : plan_->leaves) leaves_.push_back(nodes[place]);
    for (const tensor::Plan::Segment& segment : plan_->segments) segment.schedule->Code();
  }

  nb::object Call(const nb::args& args, nb::handle out) const {
    if (args.size() != numbers_.size()) {
      throw nb::type_error(
          fmt::format("{} arrays are wanted, not {}", numbers_.size(), args.size()).c_str());
    }
    std::array<const float*, kFew> few_leaves{};
    std::array<ForeignMemory, kFew> few_arrays;
    std::vector<const float*> many_leaves(leaves_.size() > kFew ? leaves_.size() : 0);
    std::vector<ForeignMemory> many_arrays(leaves_.size() > kFew ? leaves_.size() : 0);
    const std::span<const float*> leaves =
        many_leaves.empty() ? std::span(few_leaves).first(leaves_.size()) : std::span(many_leaves);
    ForeignMemory* const arrays = many_arrays.empty() ? few_arrays.data() : many_arrays.data();
    std::vector<std::shared_ptr<void>> kept;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      leaves[numbers_[i]] = Argument(args[i], i, arrays[i], kept);
    }
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i] != nullptr) continue;
      if (!leaves_[i]->data) {
        throw TensorError(Kind::kTensor,
                          fmt::format("{} has no values: set it, or make it an input of compile",
                                      tensor::Describe(*leaves_[i])));
      }
      if (leaves_[i]->bound != plan_->leaf_shapes[i]) {
        throw TensorError(
            Kind::kShape,
            fmt::format("{} has shape [{}] by now, and was compiled with [{}]: compile again",
                        tensor::Describe(*leaves_[i]), fmt::join(leaves_[i]->bound, ", "),
                        fmt::join(plan_->leaf_shapes[i], ", ")));
      }
      leaves[i] = leaves_[i]->data->data();
      kept.push_back(leaves_[i]->data);
    }
    if (out.is_none()) {
      std::shared_ptr<Buffer> result =
          plan_->result < leaves.size()
              ? Copied(leaves[plan_->result], plan_->leaf_counts[plan_->result])
              : Session::Of().Run(*plan_, leaves.data(), nullptr);
      return NumpyOf(std::move(result), plan_->shape);
    }
    RunInto(out, leaves);
    return nb::borrow(out);
  }

  const Tensor& tensor() const { return tensor_; }

 private:
  // The elements of one argument.
  const float* Argument(nb::handle object, std::size_t number, ForeignMemory& memory,
                        std::vector<std::shared_ptr<void>>& kept) const {
    const Shape& wanted = plan_->leaf_shapes[numbers_[number]];
    const auto check = [&](const Shape& given) {
      if (given == wanted) return;
      throw TensorError(Kind::kShape,
                        fmt::format("argument {} has shape [{}], but [{}] is wanted", number,
                                    fmt::join(given, ", "), fmt::join(wanted, ", ")));
    };
    if (PyObject_CheckBuffer(object.ptr()) != 0 && !nb::isinstance<Tensor>(object)) {
      if (memory.Get(object.ptr(), PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) && memory.IsFloat32() &&
          reinterpret_cast<std::uintptr_t>(memory.view().buf) % sizeof(float) == 0) {
        const Py_buffer& view = memory.view();
        if (!std::equal(wanted.begin(), wanted.end(), view.shape, view.shape + view.ndim)) {
          check(memory.shape());
        }
        return static_cast<const float*>(view.buf);
      }
      PyErr_Clear();
    }
    Values values;
    if (nb::isinstance<Tensor>(object)) {
      const Tensor& given = nb::cast<const Tensor&>(object);
      values.buffer = given.buffer();
      values.shape = given.computed_shape();
    } else {
      values = FromPython(object, true);
    }
    check(values.shape);
    const float* data = values.buffer->data();
    kept.push_back(std::move(values.buffer));
    return data;
  }

  void RunInto(nb::handle out, std::span<const float* const> leaves) const {
    ForeignMemory memory;
    if (!memory.Get(out.ptr(), PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)) {
      PyErr_Clear();
      throw TensorError(Kind::kTensor, "out: a writable array in C order is wanted");
    }
    if (!memory.IsFloat32()) throw TensorError(Kind::kDType, "out: float32 is wanted");
    const Py_buffer& view = memory.view();
    if (!std::equal(plan_->shape.begin(), plan_->shape.end(), view.shape, view.shape + view.ndim)) {
      throw TensorError(Kind::kShape, fmt::format("out has shape [{}], but [{}] is wanted",
                                                  fmt::join(memory.shape(), ", "),
                                                  fmt::join(plan_->shape, ", ")));
    }
    auto* const data = static_cast<float*>(view.buf);
    const auto count = static_cast<std::size_t>(view.len) / sizeof(float);
    // Kernels write to aligned memory, which may not be what they read.
    constexpr std::uintptr_t kLine = 64;
    bool is_direct =
        reinterpret_cast<std::uintptr_t>(data) % kLine == 0 && plan_->result >= leaves.size();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      is_direct =
          is_direct && (leaves[i] + plan_->leaf_counts[i] <= data || data + count <= leaves[i]);
    }
    if (is_direct) {
      Session::Of().Run(*plan_, leaves.data(), data);
      return;
    }
    if (plan_->result < leaves.size()) {
      std::memmove(data, leaves[plan_->result], count * sizeof(float));
      return;
    }
    const std::shared_ptr<Buffer> result = Session::Of().Run(*plan_, leaves.data(), nullptr);
    std::memcpy(data, result->data(), count * sizeof(float));
  }

  static constexpr std::size_t kFew = 8;

  const Tensor tensor_;
  const std::shared_ptr<const tensor::Plan> plan_;
  std::vector<std::size_t> numbers_;         // the leaf of each argument
  std::vector<const tensor::Node*> leaves_;  // kept by tensor_
};

}  // namespace

void BindCompiledTensor(nb::module_& module) {
  nb::class_<CompiledTensor>(module, "CompiledTensor",
                             "What compile() gives: a function of arrays.")
      .def(
          "__init__",
          [](CompiledTensor* place, const Tensor& tensor, const nb::list& inputs) {
            std::vector<Tensor> leaves;
            for (const nb::handle input : inputs) leaves.push_back(nb::cast<Tensor>(input));
            new (place) CompiledTensor(tensor, leaves);
          },
          "tensor"_a, "inputs"_a)
      .def("__call__", &CompiledTensor::Call, "arrays"_a, "out"_a = nb::none(),
           "One array for each input; gives a new array, or `out`, which it writes into.")
      .def_prop_ro("tensor", &CompiledTensor::tensor);
}

}  // namespace loopfleet::python
