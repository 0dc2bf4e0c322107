#pragma once
// ReplayRequest: one line of the input of `loopfleet replay`.
//
//   {"uri" | "ir", "actions", "every_step", "rules", "action_space", "features", "max_loops",
//    "stride_buckets", "merge_all_first", "start_cursor", "observations"}
//
// All but the first are optional. An unknown key is an error that names the nearest one.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/replay/observation.h"
#include "common/job/failure.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"

namespace loopfleet::client {

struct ReplayRequest {
  looptree::Source source;
  std::vector<looptree::Action> actions;
  bool every_step = false;
  looptree::RuleSet rules = looptree::RuleSet::kStructural;
  ActionSpace action_space;
  ObservationOptions look;
  bool merge_all_first = false;
  std::int64_t start_cursor = 0;
  std::optional<std::vector<std::string>> observations;
};

// Parses a line of at most 1 MiB. Errors are kMalformed, except those of the actions.
std::expected<ReplayRequest, Failure> ParseReplayRequest(std::string_view line);

// Turns an error of the looptree library into the failure of a line.
template <class T>
std::expected<T, Failure> Lift(looptree::Checked<T> checked) {
  if (!checked) return std::unexpected(ToFailure(checked.error()));
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(checked);
  }
}

}  // namespace loopfleet::client
