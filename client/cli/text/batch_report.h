#pragma once
// BatchReport: what came of a batch, as text and as JSON: how many jobs are ok, the grades of their
// figures, failures by code, and the quickest schedules.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "client/confirmation.h"
#include "client/outcome_json.h"

namespace loopfleet::client {

class BatchReport {
 public:
  static constexpr std::size_t kBest = 5;

  // `best`: how many of the quickest to keep of each benchmark and class of hardware.
  explicit BatchReport(std::size_t best = kBest) : winners_(best) {}
  void Add(const Outcome& outcome);

  std::uint32_t ok() const { return ok_; }
  std::map<std::string, std::uint32_t> failed() const;  // how many jobs, by code

  // "996 ok (12 from the store), 4 failed: 3 RUN_CRASH, 1 RUN_TIMEOUT"
  std::string Summary() const;
  // Lines below the summary: each failure code with the first such job and what to do, the grades,
  // the quickest. Of many benchmarks the quickest of each, at most kMostLines of them.
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

  std::uint32_t ok_ = 0;
  std::uint32_t from_store_ = 0;
  std::map<std::string, Failed> failed_;         // by code
  std::map<std::string, std::uint32_t> grades_;  // of the figures
  Winners winners_;
};

}  // namespace loopfleet::client
