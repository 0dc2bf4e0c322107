#pragma once
// FleetView: the fleet as JSON, as the page's first screen shows it: health in one sentence, cards,
// throughput, device pools, batches, failures, best results. A pure function of what it is given.

#include <cstddef>
#include <string>
#include <vector>

#include "common/job/outcome_json.h"
#include "coordinator/page/fleet_history.h"
#include "coordinator/shell/fleet_snapshot.h"
#include "storage/recent_outcomes.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

// What the newest outcomes say, put together: see Digest().
struct OutcomeDigest {
  Json failures = Json::array();     // by code, the most frequent first
  Json best = Json::array();         // of each benchmark and class, by benchmark
  Json by_worker = Json::object();   // name -> figures, median spread, grades
  Json pools = Json::object();       // hardware class -> median spread and time of measuring
  Json turnaround = Json::object();  // of outcomes: median and 99 %, in ms
  std::size_t outcomes = 0;          // that were looked at
  std::size_t benchmarks = 0;        // how many entries `best` would have without its bound
  bool is_all = false;               // there are no others
};
// `most`: how many were asked for, at most.
OutcomeDigest Digest(const std::vector<storage::BriefOutcome>& outcomes, std::size_t most);

struct FleetFacts {
  const FleetSnapshot& snapshot;
  const FleetHistory& history;
  const std::vector<storage::StoredBatch>& batches;  // newest first
  const OutcomeDigest& digest;
  const std::vector<std::string>& unhealthy;  // what /healthz complains of
  std::string version;
};
Json OverviewJson(const FleetFacts& facts);

// One batch as `loopfleet batch show --json` prints it, with its rate and what is left of its time.
Json BatchViewJson(const storage::StoredBatch& batch, const FleetHistory& history);

}  // namespace loopfleet::coordinator
