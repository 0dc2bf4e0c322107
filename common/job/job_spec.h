#pragma once
// JobSpec: one question: how fast is this benchmark after these actions, under these conditions?

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/action.h"
#include "common/looptree/benchmark.h"
#include "common/looptree/walk.h"

namespace loopfleet {

enum class DeviceKind : std::uint8_t { kCpu, kCuda };
// What a job asks for. Unset in a request: what the benchmark's own target says.
enum class DeviceWish : std::uint8_t { kByBenchmark, kCpu, kCuda, kAny };
enum class CacheState : std::uint8_t { kWarm, kCold };
// Whether a stored result may answer.
enum class Freshness : std::uint8_t { kStoredMayAnswer, kMeasureAnew };

std::string_view DeviceKindName(DeviceKind kind);  // "cpu", "cuda"
std::string_view CacheStateName(CacheState state);  // "warm", "cold"

struct JobSpec {
  looptree::Source source;
  std::vector<looptree::Action> actions;
  looptree::RuleSet rules = looptree::RuleSet::kStructural;
  looptree::OnIllegal on_illegal = looptree::OnIllegal::kReject;
  bool merge_all_first = false;
  // Unset: the benchmark's own. A contradiction is INVALID_BENCHMARK.
  std::optional<looptree::Dialect> dialect;
  DeviceWish device = DeviceWish::kByBenchmark;
  Freshness freshness = Freshness::kStoredMayAnswer;
  std::string tag;  // JSON text of the user's own, returned as it came; "" is none

  // The wire has these now; until they work, a value other than the default is UNSUPPORTED
  // (UnsupportedField says which), never ignored.
  std::int32_t priority = 0;
  std::uint32_t threads = 1;
  CacheState cache = CacheState::kWarm;
  std::vector<std::string> labels;
  std::string affinity;
  double precision = 0;             // wanted relative half-width of the interval; 0: the default policy
  double budget_ms = 0;             // 0: the default policy
  std::uint64_t cut_above_ns = 0;   // 0: never cut
  double deadline_s = 0;            // 0: none
  double max_age_s = 0;             // 0: any age

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// The refusal of the first field that this version cannot honour, if there is one.
std::optional<Failure> UnsupportedField(const JobSpec& spec);

looptree::ReplayOptions ReplayOptionsOf(const JobSpec& spec);

// Replays the job's actions, and checks its dialect against the benchmark's.
std::expected<looptree::Replayed, Failure> ReplayJob(const JobSpec& spec);

// The kind of worker that the job needs, given its benchmark's target. kAny prefers nothing.
enum class Placement : std::uint8_t { kCpu, kCuda, kAny };
Placement PlacementOf(DeviceWish wish, looptree::Target target);

}  // namespace loopfleet
