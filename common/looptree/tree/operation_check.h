#pragma once
// What transformations of trees refuse an operation with, and how they name it.

#include <fmt/format.h>

#include <expected>
#include <string>
#include <utility>

#include "common/looptree/program/program.h"
#include "common/looptree/program/rejection.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

inline std::unexpected<Rejection> Illegal(std::string message) {
  return Reject(RejectionCode::kInvalidAction, std::move(message));
}

// "%4 (add)"
inline std::string NodeText(const LoopTree& tree, NodeId node) {
  return fmt::format("%{} ({})", node, OpName(tree.program().nodes[node].op));
}

inline Checked<void> CheckNode(const LoopTree& tree, NodeId node) {
  if (node < tree.program().nodes.size()) return {};
  return Illegal(fmt::format("there is no operation %{}: the program has {}", node,
                             tree.program().nodes.size()));
}

}  // namespace loopfleet::looptree
