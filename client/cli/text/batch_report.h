#pragma once
// BatchReport: what came of a batch, as text and as JSON: how many jobs are ok, the grades of their
// figures, failures by code, and the best: the quickest schedules, the passes that left the fewest
// instructions.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/confirmation.h"
#include "client/outcome_json.h"

namespace loopfleet::client {

class BatchReport {
 public:
  static constexpr std::size_t kBest = 5;

  // `best`: how many to keep of each benchmark, and of schedules of each class of hardware.
  explicit BatchReport(std::size_t best = kBest) : best_(best), winners_(best) {}
  void Add(const Outcome& outcome);

  std::uint32_t ok() const { return ok_; }
  std::map<std::string, std::uint32_t> failed() const;  // how many jobs, by code

  // "996 ok (12 from the store), 4 failed: 3 RUN_CRASH, 1 RUN_TIMEOUT"
  std::string Summary() const;
  // Lines below the summary: each failure code with the first such job and what to do, the grades,
  // the best. Of many benchmarks the best of each, at most kMostLines of them.
  std::string Details() const;
  Json ToJson() const;  // {"ok", "from_store", "failed", "grades", "best"}

 private:
  static constexpr std::size_t kMostLines = 20;

  struct Failed {
    std::uint32_t count = 0;
    JobId job;  // the first
    std::string message;
    std::string_view advice;
  };

  // What passes left of a program.
  struct Smallest {
    JobId job;
    std::string benchmark;
    double instructions = 0;
    std::string passes;  // as `opt` takes them; "": none
  };
  void AddObserved(const Outcome& outcome);
  std::vector<Smallest> AllSmallest() const;
  std::string SmallestText() const;

  const std::size_t best_;
  std::uint32_t ok_ = 0;
  std::uint32_t from_store_ = 0;
  std::map<std::string, Failed> failed_;         // by code
  std::map<std::string, std::uint32_t> grades_;  // of the figures
  Winners winners_;
  std::map<std::string, std::vector<Smallest>> smallest_;  // by benchmark, the fewest first
};

}  // namespace loopfleet::client
