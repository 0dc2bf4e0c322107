#pragma once
// The task that measures the peaks of a worker's timing core and its caches (docs/PROTOCOL.md).

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "common/job/failure.h"
#include "common/job/job_spec.h"
#include "common/job/observed.h"
#include "common/job/resolved_task.h"

namespace loopfleet {

inline constexpr std::string_view kPeaksProbe = "probe://peaks-v0";

// INVALID_BENCHMARK: there is no such probe. INVALID_ACTION: probes take none. MALFORMED: it asks
// for a GPU.
std::expected<ResolvedTask, Failure> ResolveProbe(const JobSpec& spec);

// Why the values are not a probe's; nullopt: they are, which are numbers.
std::optional<std::string> WhyNoProbe(const JobSpec& spec, const Observed& observed);

}  // namespace loopfleet
