#pragma once
// ViewAdjoint: for each element of a view's input, the sum over the elements of the view that show
// it. It is a guarded view of the adjoint, with the index equations solved for the view's dims,
// summed over the dims that they leave open, such as those of a window.

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace loopfleet::tensor {

// `adjoint` has the dims of `view`. `sizes`: of the view's dims, as far as known, else 0; they
// choose the dims to solve for. Throws kGradient for an equation beyond 64 bits.
Tensor ViewAdjoint(const Node& view, const Tensor& adjoint, const std::vector<std::int64_t>& sizes);

// `tensor` under other symbols, those of `from` by those of `to`; others stay.
Tensor Renamed(const Tensor& tensor, const std::vector<Symbol>& from,
               const std::vector<Symbol>& to);

}  // namespace loopfleet::tensor
