#pragma once
// TensorError: what is wrong with a use of tensors. It names the symbols, sizes and tensors that it
// is about.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/base/result.h"

namespace loopfleet::tensor {

class TensorError : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    kSizeUnknown,   // a size is needed that nothing tells
    kSizeConflict,  // two sources give one size differently
    kShape,         // dims do not fit: a wrong count, a symbol that a tensor lacks
    kView,          // an equation or an index that is no affine view
    kDType,         // elements that cannot become float32
    kTensor,        // the tensor is not of the right sort, such as no leaf
    kSchedule,      // a schedule does not fit the tensor
    kKernel,        // a kernel cannot be compiled, is wrong, or failed
    kGradient,      // an operation or a loss has no gradient
  };
  TensorError(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// The name of the class in Python: "SizeUnknown".
const char* ErrorName(TensorError::Kind kind);

// The twin of any method for callers without exceptions: TryTo([&] { return t.shape(); }) is a
// Result that holds the shape, or the message as kInvalid.
template <class Function>
auto TryTo(Function&& function) -> Result<decltype(function())> {
  try {
    if constexpr (std::is_void_v<decltype(function())>) {
      function();
      return {};
    } else {
      return function();
    }
  } catch (const TensorError& error) {
    return Fail(ErrorKind::kInvalid, std::string(ErrorName(error.kind())) + ": " + error.what());
  }
}

}  // namespace loopfleet::tensor
