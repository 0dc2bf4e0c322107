#pragma once
// ModelDatabase: the rows of a ModelStore, in maps. It outlives the store as a file does.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "storage/pruning.h"
#include "storage/record.h"
#include "storage/thinning.h"

namespace loopfleet::storage {

struct ModelDatabase {
  struct Row {
    StoredAnswer answer;  // its stages are zero
    bool is_suspect = false;
    std::int64_t original = 0;  // of a copied figure: the row that it copies, or its own; else 0
    std::optional<ProgramKey> program = std::nullopt;  // of one that may be found by it
    JobId job = {};                                    // that measured it
    WallTime measured_elsewhere_at{};                  // the epoch: it was measured here
    JobSpec spec = {};                                 // of that job
  };
  struct KnownFailure {
    JobId job;
    std::uint64_t cut_above_ns = 0;
    Witness witness;
    bool is_suspect = false;
  };

  std::uint64_t epoch = 0;
  Uuid incarnation = Uuid::Random();
  std::map<BatchId, StoredBatch> batches;
  std::map<std::pair<Uuid, Uuid>, StoredRequest> requests;  // by client and request
  std::map<JobId, JobSpec> jobs;
  std::map<JobId, WallTime> accepted_at;
  std::map<JobId, std::optional<ReplayResult>> replayed;
  std::map<JobId, Outcome> outcomes;
  std::map<JobId, std::int64_t> row_of;  // of those with a result
  std::map<std::pair<BatchId, std::uint64_t>, JobId> sequences;
  std::map<std::int64_t, Row> results;  // by row: above 0 timed, below 0 observed
  std::vector<KnownFailure> failures;   // oldest first
  std::vector<Doubt> doubts;
  std::map<std::string, WorkersDrained> drains;
  std::set<BatchId> pruned;

  bool is_full = false;  // nothing can be written

  // Each takes away what the rule says, and counts it.
  ThinningCount Thin(const ThinningRule& rule);
  PruningCount Prune(const PruningRule& rule);
};

// Whether a worker's figures may answer for other kernels with the same machine code.
bool HasCode(const Evaluation& evaluation);

}  // namespace loopfleet::storage
