#pragma once
// JobSpec: a job as submitted: a benchmark, actions and conditions. The benchmark decides the kind
// of job (task.h); most ask how fast a loop nest is after these actions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"
#include "common/job/failure.h"
#include "common/job/measurement.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"

namespace loopfleet {

enum class DeviceKind : std::uint8_t { kCpu, kCuda };
// The device that a job asks for. kByBenchmark, the default: the benchmark's own target.
enum class DeviceRequest : std::uint8_t { kByBenchmark, kCpu, kCuda, kAny };
enum class CacheState : std::uint8_t { kWarm, kCold };
// How finely a job says where the time goes (common/job/profile.h); kNone: it gives a figure.
enum class ProfileLevel : std::uint8_t { kNone, kRoots, kLoops, kLines };
// Whether a stored result may answer the job.
enum class Freshness : std::uint8_t { kAllowStored, kMeasureAgain };

template <>
struct EnumNames<DeviceKind> {
  static constexpr std::array kAll = {NamedValue{DeviceKind::kCpu, "cpu"},
                                      NamedValue{DeviceKind::kCuda, "cuda"}};
};

template <>
struct EnumNames<DeviceRequest> {
  static constexpr std::array kAll = {NamedValue{DeviceRequest::kByBenchmark, "by_benchmark"},
                                      NamedValue{DeviceRequest::kCpu, "cpu"},
                                      NamedValue{DeviceRequest::kCuda, "cuda"},
                                      NamedValue{DeviceRequest::kAny, "any"}};
};
template <>
struct EnumNames<CacheState> {
  static constexpr std::array kAll = {NamedValue{CacheState::kWarm, "warm"},
                                      NamedValue{CacheState::kCold, "cold"}};
};

template <>
struct EnumNames<Freshness> {
  static constexpr std::array kAll = {NamedValue{Freshness::kAllowStored, "allow_stored"},
                                      NamedValue{Freshness::kMeasureAgain, "measure_again"}};
};

template <>
struct EnumNames<ProfileLevel> {
  static constexpr std::array kAll = {
      NamedValue{ProfileLevel::kNone, "none"}, NamedValue{ProfileLevel::kRoots, "roots"},
      NamedValue{ProfileLevel::kLoops, "loops"}, NamedValue{ProfileLevel::kLines, "lines"}};
};

struct JobSpec {
  looptree::Source source;
  std::vector<looptree::Action> actions;
  std::vector<std::string> passes;   // of LLVM, for a program (common/job/pass_job.h)
  std::vector<std::string> observe;  // names of observations, for a program
  looptree::RuleSet rules = looptree::RuleSet::kStructural;
  looptree::OnIllegal on_illegal = looptree::OnIllegal::kReject;
  bool merge_all_first = false;
  // Unset: the benchmark's own. A different one is INVALID_BENCHMARK.
  std::optional<looptree::Dialect> dialect;
  DeviceRequest device = DeviceRequest::kByBenchmark;
  Freshness freshness = Freshness::kAllowStored;
  std::string tag;  // JSON text from the user, returned unchanged; "": none

  std::int32_t priority = 0;  // higher first, among one client's jobs
  std::uint32_t threads = 1;  // limit for the kernel
  CacheState cache = CacheState::kWarm;
  std::vector<std::string> labels;  // the worker must carry all of them
  std::string affinity;             // jobs with equal affinity run on one worker; "": none
  double precision = 0;  // wanted relative half-width of the interval; 0: the default policy
  double budget_ms = 0;  // limit for timing; 0: the default policy
  std::uint64_t cut_above_ns = 0;  // CUT once an iteration certainly takes longer; 0: never cut
  double deadline_s = 0;           // from acceptance until EXPIRED; 0: none
  double max_age_s = 0;            // limit for a stored result that answers; 0: any age
  Grade min_grade = Grade::kD;     // a worse figure is UNSTABLE_TIMING
  ProfileLevel profile = ProfileLevel::kNone;

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Valid ranges; some fields may also be 0, for their default. Clocks do not allow a precision finer
// than 0.1 %; the budget must fit in the time limit for running one job.
inline constexpr double kMinPrecision = 0.001;
inline constexpr double kMaxPrecision = 0.5;
inline constexpr double kLeastBudgetMs = 0.1;
inline constexpr double kMostBudgetMs = 10'000;
inline constexpr std::size_t kMostTagBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMostPasses = 1024;
inline constexpr std::size_t kMostPassBytes = 512;  // of each
inline constexpr std::size_t kMostObserved = 32;
inline constexpr std::uint32_t kMostThreads = 1024;
inline constexpr std::size_t kMostLabels = 64;       // of a job, or assigned to a worker
inline constexpr std::size_t kMostLabelBytes = 256;  // of each
inline constexpr std::int32_t kLeastPriority = -100;
inline constexpr std::int32_t kMostPriority = 100;
inline constexpr double kShortestDeadlineS = 0.001;
inline constexpr double kLongestDeadlineS = 366.0 * 24 * 3600;

// MALFORMED, naming the first field that is out of range; nullopt if all are valid.
std::optional<Failure> ValidateSpec(const JobSpec& spec);

// Why the label is invalid; nullopt if it is valid.
std::optional<std::string> ValidateLabel(std::string_view label);

// The kind of worker that the job needs, given its benchmark's target. kAny has no preference.
enum class Placement : std::uint8_t { kCpu, kCuda, kAny };
template <>
struct EnumNames<Placement> {
  static constexpr std::array kAll = {NamedValue{Placement::kCpu, "cpu"},
                                      NamedValue{Placement::kCuda, "cuda"},
                                      NamedValue{Placement::kAny, "any"}};
};
Placement PlacementOf(DeviceRequest wish, looptree::Target target);

// The most work of one run that a worker can verify within its limits. One GPU run of the same job
// takes less time, so it may be ten times as much.
constexpr std::uint64_t MostFlops(DeviceKind device) {
  return device == DeviceKind::kCuda ? 1'000'000'000'000 : 100'000'000'000;
}

// PlacementOf a job of so much work: kCuda instead of kAny if it is too much for a CPU.
// LIMIT_FLOPS: it is too much for every device that the job may run on.
std::expected<Placement, Failure> PlaceJob(DeviceRequest wish, looptree::Target target,
                                           std::uint64_t flop_count);

}  // namespace loopfleet
