#pragma once
// Gradients of tensors, in reverse over their graph. A gradient is a tensor like any other, made of
// the same operations: lazy, scheduled, compiled and differentiated as they are.
//
//   const std::vector<Tensor> slopes = Grad(loss, {weight, bias});

#include <optional>
#include <vector>

#include "tensor/tensor.h"

namespace loopfleet::tensor {

struct GradientOptions {
  // The adjoint of the loss, over its dims or some of them; none: 1, for a loss of rank 0.
  std::optional<Tensor> seed;
  // prod() divides its result by each factor: no factor may be 0.
  bool allow_division = false;
};

// The gradient of `loss` with respect to each of `of`, with its dims in its order. `of` may be any
// tensors that the loss is computed from, leaves or not. Sizes need not be known yet.
//
// Comparisons, floor, ceil, round, sign and the condition of Where have gradient 0. Where operands
// of max or min are equal each gets half; equal maxima of a reduction share evenly.
//
// Throws TensorError: kGradient for a loss with dims and no seed, a seed with other dims, a tensor
// that the loss does not depend on, prod() without `allow_division`; sizes as shape() does.
std::vector<Tensor> Grad(const Tensor& loss, const std::vector<Tensor>& of,
                         const GradientOptions& options = {});

}  // namespace loopfleet::tensor
