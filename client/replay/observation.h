#pragma once
// Observations: the named values that can be observed of a walk. One table serves `loopfleet
// replay`, its help and its error messages.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/outcome_json.h"
#include "common/job/failure.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/features/features.h"

namespace loopfleet::client {

// The caller's actions, in its order. `legal_actions` is a subset of it; `5_prev_actions_tensor` is
// one-hot over it.
struct ActionSpace {
  std::vector<std::string> names;  // as the caller spells them
  std::vector<looptree::Action> actions;
};

struct ObservationOptions {
  looptree::FeatureLayout features = looptree::FeatureLayout::kAgent20;
  std::optional<std::size_t> max_loops;  // loops_tensor is padded to this many rows and flattened
  std::optional<std::size_t> stride_buckets;  // 16 or 32; none: by `features`
};

// The state of a walk that is observed. Holds references only.
struct Scene {
  const looptree::Benchmark& benchmark;
  const looptree::LoopTree& tree;
  looptree::TreeRef cursor = 0;                  // simple: the selected one of L0, L1, L2
  const looptree::SimpleWalk* simple = nullptr;  // dialect simple
  const looptree::AgentWalk* agent = nullptr;    // dialect agent
  const ActionSpace* space = nullptr;            // dialect agent
  const ObservationOptions& options;
};

struct Observation {
  enum class Dialects : std::uint8_t { kSimple, kAgent, kBoth };
  enum class Shown : std::uint8_t { kByDefault, kOnRequest };

  std::string_view name;
  Dialects dialects;
  Shown shown;                   // for kBoth: in dialect agent; dialect simple has its own defaults
  std::string_view type;         // shape and element type
  std::string_view description;  // one line
  std::expected<Json, Failure> (*value)(const Scene&);

  bool In(looptree::Dialect dialect) const;
  bool IsDefault(looptree::Dialect dialect) const;
};

std::span<const Observation> Observations();  // in the order of a reply

// The named rows, in the order of the table; without names, the dialect's defaults. kMalformed:
// states the first name that is unknown or of the other dialect, and the nearest valid one.
std::expected<std::vector<const Observation*>, Failure> ChooseObservations(
    const std::optional<std::vector<std::string>>& names, looptree::Dialect dialect);

}  // namespace loopfleet::client
