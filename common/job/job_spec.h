#pragma once
// JobSpec: one question: how fast is this benchmark after these actions, under these conditions?

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"

namespace loopfleet {

enum class DeviceKind : std::uint8_t { kCpu, kCuda };
// What a job asks for. Unset in a request: what the benchmark's own target says.
enum class DeviceWish : std::uint8_t { kByBenchmark, kCpu, kCuda, kAny };
enum class CacheState : std::uint8_t { kWarm, kCold };
// Whether a stored result may answer.
enum class Freshness : std::uint8_t { kStoredMayAnswer, kMeasureAnew };

std::string_view DeviceKindName(DeviceKind kind);   // "cpu", "cuda"
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

  std::int32_t priority = 0;  // higher first, among one client's jobs
  std::uint32_t threads = 1;  // that the kernel may use
  CacheState cache = CacheState::kWarm;
  std::vector<std::string> labels;  // that the worker must carry, all of them
  std::string affinity;             // jobs of equal affinity run on one worker; "" is none
  double precision = 0;  // wanted relative half-width of the interval; 0: the default policy
  double budget_ms = 0;  // that timing may take; 0: the default policy
  std::uint64_t cut_above_ns = 0;  // CUT once a run surely takes longer; 0: never cut
  double deadline_s = 0;           // from acceptance until EXPIRED; 0: none
  double max_age_s = 0;            // of a stored result that answers; 0: any age

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// What `precision` and `budget_ms` may be, where they are not 0. Finer than 0.1 % the clocks do not
// allow; the budget must end within the limit of one job's run.
inline constexpr double kFinestPrecision = 0.001;
inline constexpr double kCoarsestPrecision = 0.5;
inline constexpr double kLeastBudgetMs = 0.1;
inline constexpr double kMostBudgetMs = 10'000;
inline constexpr std::uint32_t kMostThreads = 1024;
inline constexpr std::size_t kMostLabels = 64;       // of a job, or given to a worker
inline constexpr std::size_t kMostLabelBytes = 256;  // of each
inline constexpr std::int32_t kLeastPriority = -100;
inline constexpr std::int32_t kMostPriority = 100;
inline constexpr double kShortestDeadlineS = 0.001;
inline constexpr double kLongestDeadlineS = 366.0 * 24 * 3600;

// The refusal (MALFORMED) of the first field whose value has no meaning, if there is one.
std::optional<Failure> SenselessField(const JobSpec& spec);

// Why no worker and no job can carry such a label; empty if it can.
std::optional<std::string> SenselessLabel(std::string_view label);

looptree::ReplayOptions ReplayOptionsOf(const JobSpec& spec);

// Replays the job's actions, and checks its dialect against the benchmark's.
std::expected<looptree::Replayed, Failure> ReplayJob(const JobSpec& spec);

// The kind of worker that the job needs, given its benchmark's target. kAny prefers nothing.
enum class Placement : std::uint8_t { kCpu, kCuda, kAny };
Placement PlacementOf(DeviceWish wish, looptree::Target target);

}  // namespace loopfleet
