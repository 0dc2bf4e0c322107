#pragma once
// Arrays between Python and tensors: values come in from the buffer protocol, `__dlpack__` and
// `__array__`, and go out as NumPy arrays that share their memory.

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "tensor/tensor.h"

namespace loopfleet::python {

// An object that lives as long as the interpreter, by its name.
nanobind::object& Kept(const char* name);
// Raises the error as its class, which loopfleet.tensor gave by its name.
void SetPythonError(const tensor::TensorError& error);
std::string TypeName(nanobind::handle object);

// A Python object's memory, given back when nothing shows it any more, by whichever thread.
class ForeignMemory {
 public:
  // False, and a Python error: it has none of this sort.
  bool Get(PyObject* object, int flags) {
    is_held_ = PyObject_GetBuffer(object, &view_, flags) == 0;
    return is_held_;
  }
  ForeignMemory() = default;
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;
  ~ForeignMemory() {
    if (!is_held_ || Py_IsInitialized() == 0) return;
    const nanobind::gil_scoped_acquire lock;
    PyBuffer_Release(&view_);
  }
  const Py_buffer& view() const { return view_; }
  bool IsFloat32() const {
    const char* format = view_.format == nullptr ? "B" : view_.format;
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    return format[0] == 'f' && format[1] == '\0';
  }
  tensor::Tensor::Shape shape() const { return {view_.shape, view_.shape + view_.ndim}; }

 private:
  Py_buffer view_{};
  bool is_held_ = false;
};

struct Values {
  tensor::Tensor::Shape shape;
  std::shared_ptr<tensor::Buffer> buffer;
};
// Throws TensorError. Without `copy` the buffer shows the object's own memory.
Values FromPython(nanobind::handle object, bool copy);
std::shared_ptr<tensor::Buffer> Copied(const float* from, std::size_t count);

// A read-only array of this memory.
nanobind::object NumpyOf(std::shared_ptr<tensor::Buffer> buffer,
                         const tensor::Tensor::Shape& shape);
// Answers a request for the buffer of these values. -1, with a Python error: it is refused.
int GetBufferOf(std::shared_ptr<tensor::Buffer> buffer, const tensor::Tensor::Shape& shape,
                Py_buffer* view, int flags);

void BindArrays(nanobind::module_& module);

}  // namespace loopfleet::python
