#include "client/python/array_exchange.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace loopfleet::python {

namespace nb = nanobind;
using tensor::Buffer;
using tensor::TensorError;
using Kind = TensorError::Kind;
using Shape = tensor::Tensor::Shape;

nb::object& Kept(const char* name) {
  static auto* const objects = new std::map<std::string, nb::object>;
  return (*objects)[name];
}

void SetPythonError(const TensorError& error) {
  const nb::object& type = Kept(tensor::ErrorName(error.kind()));
  PyErr_SetString(type.is_valid() ? type.ptr() : PyExc_RuntimeError, error.what());
}

std::string TypeName(nb::handle object) {
  return nb::cast<std::string>(nb::object(object.type().attr("__name__")));
}

std::shared_ptr<Buffer> Copied(const float* from, std::size_t count) {
  auto buffer = Buffer::Make(count);
  std::memcpy(buffer->data(), from, count * sizeof(float));
  return buffer;
}

namespace {

// Memory that NumPy and others read through the buffer protocol.
struct ArrayView {
  std::shared_ptr<Buffer> buffer;
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;
};

int GetArrayBuffer(PyObject* self, Py_buffer* view, int flags) {
  ArrayView* const array = nb::inst_ptr<ArrayView>(nb::handle(self));
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError,
                    "the values of a tensor are read-only; numpy(copy=True) is not");
    view->obj = nullptr;
    return -1;
  }
  view->buf = array->buffer->data();
  view->obj = self;
  Py_INCREF(self);
  view->len = static_cast<Py_ssize_t>(array->buffer->count() * sizeof(float));
  view->readonly = 1;
  view->itemsize = sizeof(float);
  view->format = (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? const_cast<char*>("f") : nullptr;
  view->ndim = static_cast<int>(array->shape.size());
  view->shape = (flags & PyBUF_ND) == PyBUF_ND ? array->shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? array->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}

PyType_Slot array_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(GetArrayBuffer)},
                             {0, nullptr}};

nb::object ViewOf(std::shared_ptr<Buffer> buffer, const Shape& shape) {
  ArrayView view{.buffer = std::move(buffer)};
  view.shape.assign(shape.begin(), shape.end());
  view.strides.resize(shape.size());
  Py_ssize_t stride = sizeof(float);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    view.strides[axis] = stride;
    stride *= view.shape[axis];
  }
  return nb::cast(std::move(view));
}

Values Converted(nb::handle object);

// With an `__dlpack__` and no buffer, such as torch's tensors.
Values FromDlpack(nb::handle object, bool copy) {
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(nb::borrow(object), array, false)) {
    throw TensorError(Kind::kDType,
                      fmt::format("a {} gives no array by __dlpack__", TypeName(object)));
  }
  if (array.device_type() != nb::device::cpu::value) {
    throw TensorError(Kind::kDType,
                      "the array is not in the memory of the CPU: move it there first");
  }
  const bool is_float32 = array.dtype() == nb::dtype<float>();
  Values values;
  std::int64_t expected = 1;
  bool is_dense = true;
  for (std::size_t axis = array.ndim(); axis-- > 0;) {
    values.shape.insert(values.shape.begin(), static_cast<std::int64_t>(array.shape(axis)));
    is_dense &= array.shape(axis) == 1 || array.stride(axis) == expected;
    expected *= static_cast<std::int64_t>(array.shape(axis));
  }
  if (copy && (!is_float32 || !is_dense)) {
    return Converted(nb::module_::import_("numpy").attr("from_dlpack")(object));
  }
  if (!is_float32) throw TensorError(Kind::kDType, "copy=False needs float32");
  if (!is_dense) {
    throw TensorError(Kind::kTensor,
                      "the array's elements are not dense in memory: make it contiguous");
  }
  const auto* data = static_cast<const float*>(array.data());
  if (copy) {
    values.buffer = Copied(data, array.size());
    return values;
  }
  auto* const kept = new nb::ndarray<nb::ro>(array);
  values.buffer =
      Buffer::Foreign(data, array.size(), std::shared_ptr<void>(kept, [](void* pointer) {
                        if (Py_IsInitialized() == 0) return;
                        const nb::gil_scoped_acquire lock;
                        delete static_cast<nb::ndarray<nb::ro>*>(pointer);
                      }));
  return values;
}

// Of any type and layout that NumPy reads as numbers.
Values Converted(nb::handle object) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("asarray")(object);
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (kind.size() != 1 || std::string("biuf").find(kind) == std::string::npos) {
    throw TensorError(Kind::kDType,
                      fmt::format("elements of type {} cannot become float32",
                                  nb::cast<std::string>(nb::str(nb::object(array.attr("dtype"))))));
  }
  array = numpy.attr("ascontiguousarray")(array, numpy.attr("float32"))
              .attr("reshape")(array.attr("shape"));  // ascontiguousarray gives at least one dim
  return FromPython(array, true);
}

}  // namespace

nb::object NumpyOf(std::shared_ptr<Buffer> buffer, const Shape& shape) {
  static nb::object& make = Kept("numpy.ndarray");
  static nb::object& float32 = Kept("numpy.float32");
  if (!make.is_valid()) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    make = numpy.attr("ndarray");
    float32 = numpy.attr("dtype")("float32");
  }
  nb::object sizes = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    PyTuple_SetItem(sizes.ptr(), static_cast<Py_ssize_t>(axis), PyLong_FromLongLong(shape[axis]));
  }
  return make(sizes, float32, ViewOf(std::move(buffer), shape));
}

Values FromPython(nb::handle object, bool copy) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    auto memory = std::make_shared<ForeignMemory>();
    if (!memory->Get(object.ptr(), PyBUF_FULL_RO)) {
      PyErr_Clear();
      throw TensorError(Kind::kDType,
                        fmt::format("a {} does not show its memory", TypeName(object)));
    }
    const Py_buffer& view = memory->view();
    const bool is_dense = PyBuffer_IsContiguous(&view, 'C') != 0;
    const bool is_placed = reinterpret_cast<std::uintptr_t>(view.buf) % sizeof(float) == 0;
    if (memory->IsFloat32() && is_dense && is_placed) {
      const auto* data = static_cast<const float*>(view.buf);
      const auto count = static_cast<std::size_t>(view.len) / sizeof(float);
      Values values{.shape = memory->shape()};
      values.buffer = copy ? Copied(data, count) : Buffer::Foreign(data, count, memory);
      return values;
    }
    if (!copy) {
      if (!memory->IsFloat32()) throw TensorError(Kind::kDType, "copy=False needs float32");
      throw TensorError(Kind::kTensor,
                        "copy=False needs elements that are dense in memory (C order)");
    }
    return Converted(object);
  }
  if (nb::hasattr(object, "__dlpack__")) return FromDlpack(object, copy);
  const bool is_listed = nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
  if (!is_listed && !nb::hasattr(object, "__array__")) {
    throw TensorError(Kind::kDType,
                      fmt::format("a {} is no array: it has neither the buffer protocol nor "
                                  "__dlpack__",
                                  TypeName(object)));
  }
  if (!copy)
    throw TensorError(Kind::kTensor, "copy=False needs an array, whose memory can be shared");
  return Converted(object);
}

int GetBufferOf(std::shared_ptr<Buffer> buffer, const Shape& shape, Py_buffer* view, int flags) {
  const nb::object array = ViewOf(std::move(buffer), shape);
  return GetArrayBuffer(array.ptr(), view, flags);
}

void BindArrays(nb::module_& module) {
  nb::class_<ArrayView>(module, "ArrayView", nb::type_slots(array_slots),
                        "The memory of a tensor's values, read-only, kept alive by its arrays.");
}

}  // namespace loopfleet::python
