#pragma once
// Rejection: why a program, an action or a tree is not accepted. Data, not an exception: it becomes
// a job's Failure (job/failure.h) with the code of the same name.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

namespace loopfleet::looptree {

enum class RejectionCode {
  kInvalidBenchmark,  // the URI or the program text names nothing that can be run
  kInvalidAction,     // an action is unknown, or illegal at its place
  kLimitActions,      // beyond Limits::actions or Limits::walk_nodes
  kLimitTree,         // too many dimensions, nodes or list entries, or too deep a tree
  kLimitFootprint,    // tensors and scratch need more bytes than Limits::footprint_bytes
  kLimitFlops,        // more work than Limits::flop_count
  kUnsupported,       // valid, but this version cannot do it
};

struct Rejection {
  RejectionCode code = RejectionCode::kInvalidBenchmark;
  std::string message;  // one line; names the invalid part and what would be valid
  std::optional<std::uint32_t> action_index;  // 0-based, if an action caused it
};

template <class T>
using Checked = std::expected<T, Rejection>;

inline std::unexpected<Rejection> Reject(RejectionCode code, std::string message,
                                         std::optional<std::uint32_t> action_index = {}) {
  return std::unexpected(Rejection{code, std::move(message), action_index});
}

}  // namespace loopfleet::looptree
