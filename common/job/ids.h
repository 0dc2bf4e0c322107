#pragma once
// Ids of batches, jobs and leases. Strong types: a batch id is not a lease id.

#include <fmt/format.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/number_in.h"
#include "common/base/strong_id.h"

namespace loopfleet {

using BatchId = StrongId<struct BatchIdTag>;

// A job is identified by its place in its batch.
struct JobId {
  BatchId batch;
  std::uint32_t index = 0;  // 0-based
  friend auto operator<=>(const JobId&, const JobId&) = default;
};

// A place among the outcomes of all batches, which are ordered by batch and sequence.
struct OutcomePlace {
  BatchId batch;
  std::uint64_t sequence = 0;
  friend auto operator<=>(const OutcomePlace&, const OutcomePlace&) = default;
};

// "12.3" as JobId prints; nullopt for other text.
inline std::optional<JobId> ParseJobId(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto batch = NumberIn<std::uint64_t>(text.substr(0, dot));
  const auto index = NumberIn<std::uint32_t>(text.substr(dot + 1));
  if (!batch || *batch == 0 || !index) return std::nullopt;
  return JobId{.batch = BatchId{*batch}, .index = *index};
}

// One worker's permission to run one job once. Unique across restarts of the coordinator: the boot
// epoch is in the upper 24 bits, so a late answer under an old lease is always recognised.
using LeaseId = StrongId<struct LeaseIdTag>;

}  // namespace loopfleet

template <>
struct std::hash<loopfleet::JobId> {
  std::size_t operator()(const loopfleet::JobId& id) const noexcept {
    return std::hash<std::uint64_t>{}(id.batch.value * 0x9e3779b97f4a7c15ULL + id.index);
  }
};

template <>
struct fmt::formatter<loopfleet::JobId> : fmt::formatter<std::string_view> {
  auto format(const loopfleet::JobId& id, fmt::format_context& context) const {
    return fmt::format_to(context.out(), "{}.{}", id.batch, id.index);
  }
};
