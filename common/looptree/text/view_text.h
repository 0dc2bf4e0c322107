#pragma once
// The index maps of a view in IR text: constraints and symbol map (spec B.2).

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/looptree/program/program.h"
#include "common/looptree/program/rejection.h"

namespace loopfleet::looptree {

// (constant + terms) / divisor, over dims.
struct AffineForm {
  std::vector<AffineTerm> terms;  // each dim once
  std::int64_t constant = 0;
  std::int64_t divisor = 1;
};

struct ViewConstraints {
  std::map<DimId, std::int64_t> sizes;  // size(dim) = number
  // Each dim with the first affine form over the view's own dims that it equals.
  std::map<DimId, AffineForm> equal;
  // The same for dims of the input that stand inside an expression: old = new - 1 for the
  // constraint new = old + 1.
  std::map<DimId, AffineForm> solved;
  std::size_t entry_count = 0;  // of the expressions
};

struct ViewText {
  std::string constraints;
  std::string symbol_map;
  std::size_t entry_count = 0;  // of the expressions
};

// Limit for the expression entries of all views of a program together. A convolution has about ten
// entries per dimension.
inline constexpr std::size_t kMaxViewEntries = 8192;

struct ViewContext {
  std::size_t dim_count = 0;
  const std::vector<DimId>& view_dims;
  std::size_t most_entries = kMaxViewEntries;  // kLimitTree beyond
};
Checked<ViewConstraints> ParseViewConstraints(std::string_view constraints,
                                              std::string_view symbol_map,
                                              const ViewContext& context);

// The index map of each of the input's dims: the form from the constraints, otherwise the dim
// itself if the view has it. `guarded`: all may leave the input; otherwise none may divide.
Checked<std::vector<ViewIndex>> SolveView(const ViewConstraints& constraints,
                                          const std::vector<DimId>& input_dims,
                                          const std::vector<DimId>& view_dims,
                                          const Program& program, bool guarded);

ViewText ViewTextOf(const Program& program, NodeId view);

}  // namespace loopfleet::looptree
