#pragma once
// Fills a new database with results and nothing else, as `loopfleet db prune` leaves them: to
// measure what a large store costs. 100 million took 8 to 10 minutes, and 33 GB.

#include <cstdint>
#include <filesystem>

#include "common/base/result.h"
#include "common/job/outcome.h"

namespace loopfleet::bench {

struct StoredResultsOptions {
  std::uint64_t rows = 0;
  std::uint64_t trees = 0;  // which the rows share evenly; 0: each row has its own
  std::string worker = "earlier";
};
// Each row has the conditions of `like`, and a machine code of its own. Row i is about the tree of
// RepeatableJob(i % trees), or without `trees` about UniqueTree(i).
Status FillWithResults(const std::filesystem::path& database, const Evaluation& like,
                       const StoredResultsOptions& options);

}  // namespace loopfleet::bench
