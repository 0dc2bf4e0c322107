#pragma once
// Rows of real width (20 actions, 15 samples) for a store without a cluster, each about a tree of
// its own that no program has.

#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "common/job/job_spec.h"
#include "common/job/outcome.h"
#include "storage/record.h"
#include "storage/store.h"

namespace loopfleet::bench {

inline constexpr std::uint32_t kGroup = 1'000;  // jobs in a message, outcomes in a transaction

// `benchmarks`: how many different ones the rows have.
JobSpec JobOfRow(std::uint64_t row, std::uint64_t benchmarks = 1);
// A job's outcome as made from a worker's report, about UniqueTree(tree).
Outcome MeasuredOutcome(std::uint64_t row, std::uint64_t tree);
std::string WorkerOf(std::uint64_t row);  // one of ten
// Finds the outcome about UniqueTree(tree).
storage::ResultKey KeyOfTree(std::uint64_t tree);

// Batches of kGroup jobs, one after another: accepted in one transaction, finished in the next.
class Ingest {
 public:
  struct Options {
    std::uint64_t batches = 0;     // already stored, of kGroup rows each
    std::uint64_t trees = 0;       // different ones; 0: each row has its own
    std::uint64_t benchmarks = 1;  // different ones
    bool has_programs = false;     // rows enter the best schedules of their benchmark's program
  };
  Ingest(storage::Store& store, const Options& options);

  struct Cost {
    double wall = 0;
    double cpu = 0;
    double kernel = 0;  // of cpu
    std::uint64_t jobs = 0;
  };
  // The cost excludes constructing the jobs and outcomes.
  Result<Cost> Add(std::uint64_t jobs);
  storage::JobsAccepted Accept();

 private:
  std::uint64_t TreeOf(std::uint64_t row) const {
    return options_.trees == 0 ? row : row % options_.trees;
  }
  std::vector<storage::Write> Finish();

  storage::Store& store_;
  const Options options_;
  std::uint64_t batch_;
  std::uint64_t row_;
};

// The program of a row, as Ingest enters it.
ProgramKey ProgramOfRow(std::uint64_t row, std::uint64_t benchmarks);

}  // namespace loopfleet::bench
