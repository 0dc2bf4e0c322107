#pragma once
// Rejection: why the language refuses a program, an action or a tree. Data, not an exception: it
// ends in a job's Failure (job/failure.h) under the code of the same name.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

namespace loopfleet::looptree {

enum class RejectionCode {
  kInvalidBenchmark,  // the URI or the program text names nothing that can be run
  kInvalidAction,     // an action is unknown, or illegal where it stands
  kLimitActions,      // more actions than Limits::actions
  kLimitTree,         // more nodes or a deeper tree than Limits allow
  kLimitFootprint,    // tensors and scratch need more bytes than Limits::footprint_bytes
  kLimitFlops,        // more work than Limits::flop_count
  kUnsupported,       // well-formed, but this version cannot do it
};

struct Rejection {
  RejectionCode code = RejectionCode::kInvalidBenchmark;
  std::string message;  // one line; names the offender and what would be valid
  std::optional<std::uint32_t> action_index;  // 0-based, where an action is to blame
};

template <class T>
using Checked = std::expected<T, Rejection>;

inline std::unexpected<Rejection> Reject(RejectionCode code, std::string message,
                                         std::optional<std::uint32_t> action_index = {}) {
  return std::unexpected(Rejection{code, std::move(message), action_index});
}

}  // namespace loopfleet::looptree
