#pragma once
// The index maps of a view in IR text: constraints and symbol map (spec B.2).

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/looptree/program.h"
#include "common/looptree/rejection.h"

namespace loopfleet::looptree {

// One affine form over dims.
struct AffineForm {
  std::vector<AffineTerm> terms;  // each dim once
  std::int64_t constant = 0;
};

struct ViewConstraints {
  std::map<DimId, std::int64_t> sizes;  // size(dim) = number
  std::map<DimId, std::vector<AffineForm>>
      equal;  // dim = affine form; forms that are not affine are left out
};

struct ViewText {
  std::string constraints;
  std::string symbol_map;
};

Checked<ViewConstraints> ParseViewConstraints(std::string_view constraints,
                                              std::string_view symbol_map, std::size_t dim_count);

// The index map of each of the input's dims: the first constraint that gives it in the view's own
// dims, or itself where the view has the same dim.
Checked<std::vector<ViewIndex>> SolveView(const ViewConstraints& constraints,
                                          const std::vector<DimId>& input_dims,
                                          const std::vector<DimId>& view_dims,
                                          const Program& program);

ViewText ViewTextOf(const Program& program, NodeId view);

}  // namespace loopfleet::looptree
