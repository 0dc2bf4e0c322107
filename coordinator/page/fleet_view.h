#pragma once
// FleetView: the fleet as JSON for the page's first screen: health in one sentence, cards,
// throughput, device pools, batches, failures, best results. Pure functions.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/job/outcome_json.h"
#include "coordinator/page/fleet_history.h"
#include "coordinator/shell/fleet_snapshot.h"
#include "storage/brief_outcome.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

// Summary of the newest outcomes; made by Digest().
struct OutcomeDigest {
  Json failures = Json::array();     // by code, the most frequent first
  Json best = Json::array();         // of each benchmark and class, by benchmark
  Json by_worker = Json::object();   // name -> figures, median spread, grades
  Json observed = Json::object();    // worker's name -> benchmark -> its newest observed values
  Json pools = Json::object();       // hardware class -> median spread and time of measuring
  Json turnaround = Json::object();  // median and 99 % of the outcomes, in ms
  std::size_t outcomes = 0;          // outcomes summarised
  std::size_t benchmarks = 0;        // entries that `best` would have without its limit
  bool is_all = false;               // no outcomes were left out
};
OutcomeDigest Digest(const storage::BriefOutcomes& found);

// Milliseconds since 1970, as JavaScript counts them.
inline std::int64_t EpochMs(WallTime when) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
}

struct FleetFacts {
  const FleetSnapshot& snapshot;
  const FleetHistory& history;
  const std::vector<storage::StoredBatch>& batches;  // newest first
  const OutcomeDigest& digest;
  wire::FleetHealth health;
  std::string version;
};
Json OverviewJson(const FleetFacts& facts);

// One batch as `loopfleet batch show --json` prints it, with its rate and remaining time.
Json BatchViewJson(const storage::StoredBatch& batch, const FleetHistory& history);

}  // namespace loopfleet::coordinator
