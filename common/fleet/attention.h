#pragma once
// What of the fleet needs attention: the one judgement that the page, `loopfleet status`, `top`,
// /healthz and the metrics show.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/fleet/fleet_model.h"
#include "common/wire/message.h"

namespace loopfleet {

// Of two items equally severe, the earlier kind comes first.
enum class AttentionKind : std::uint8_t {
  kCoordinatorStuck,
  kStorageFull,
  kStorageFailing,
  kNoWorkerReady,
  kCoordinatorStopping,
  kJobsUnserved,
  kManyFailures,
  kMirrorBehind,
  kWorkersQuarantined,
  kWorkersLost,
  kWorkersImprecise,
  kWorkersOutdated,
  kWorkersDrained,
};

struct AttentionInfo {
  AttentionKind kind;
  std::string_view name;     // "workers_lost": on the wire and as a metric's label
  std::string_view command;  // shows or fixes it; "": none
  std::string_view screen;   // the part of the page with details; "": none
  bool is_of_coordinator;    // the coordinator itself is unhealthy: /healthz answers 503
};
std::span<const AttentionInfo> AttentionTable();
const AttentionInfo* FindAttention(std::string_view name);  // null: not known to this version

// The event loop counts as stuck after this long.
inline constexpr std::chrono::seconds kStuckAfter{5};

// The mirror may be behind for so long before it needs attention.
inline constexpr std::chrono::seconds kMirrorBehindAfter{60};

// `silence`: time since the coordinator's event loop last turned.
wire::FleetHealth HealthOf(const FleetModel& fleet, Nanos silence = {});
// That the event loop is stuck; nullopt if it is not.
std::optional<wire::Attention> StuckLoop(Nanos silence);

// Why a worker gets no jobs or only some, or that it is imprecise or outdated: "drained by ada
// since 2026-07-01 12:30 UTC: new fan"; "" for any other.
std::string WhyLimited(const wire::WorkerInfo& worker);

}  // namespace loopfleet
