#pragma once
// ViewMap: arithmetic on the index maps of views. A composed map says where the reader of a chain
// of views reads, and under which guards.

#include <cstdint>
#include <optional>
#include <vector>

#include "common/looptree/program/program.h"

namespace loopfleet::looptree {

// (constant + terms) / divisor has to be a whole number in [0, size); otherwise the element is
// `outside`.
struct IndexGuard {
  DimId dim = 0;  // of the viewed node, that the index is along
  std::vector<AffineTerm> terms;
  std::int64_t constant = 0;
  std::int64_t divisor = 1;
  std::int64_t size = 1;
  double outside = 0;
  friend bool operator==(const IndexGuard&, const IndexGuard&) = default;
};

// Where the reader of a node reads. The guards are checked in this order; the first that fails
// gives the element. If none fails, all indices are whole and inside.
struct ViewMap {
  std::vector<ViewIndex> index;  // per dim of the source, in its order
  std::vector<IndexGuard> guards;
};

// The largest magnitude of a guarded index before its division, and of a divisor. Products with
// the strides of any accepted tensor then fit in 64 bits.
inline constexpr std::int64_t kMaxGuardedIndex = std::int64_t{1} << 30;

// The node's dims, each at its own index.
ViewMap IdentityMap(const Program& program, NodeId node);

// The map of a reader of `view` that indexes the view by `map`, as a map to the view's input.
// nullopt if a coefficient, a divisor or a guarded index exceeds its bound; never for a view of an
// accepted program.
std::optional<ViewMap> ThroughView(const Program& program, NodeId view, const ViewMap& map);

// Whether the index can be fractional or leave the input. If not, `guarded` changes nothing.
bool NeedsGuard(const Program& program, const ViewIndex& index);
// Whether any index of the view does.
bool NeedsGuard(const Program& program, const Node& view);

// The program with all that changes nothing in its plainest form, so that equal programs compare
// equal and survive IR text: guards that cannot fail, the `outside` of a view without guards,
// digits of constants beyond float32. nullopt: it is so already.
std::optional<Program> Plain(const Program& program);

}  // namespace loopfleet::looptree
