#pragma once
// SuspicionTable: Suspicion <-> row of `suspicions`. A row is what is left of a ResultsSuspected
// that has not been worked off. While it stands, nothing that it covers answers a request.

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/id_range.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

struct Suspicion {
  std::int64_t id = 0;
  ResultsSuspected what;
  // Rows that remain to be looked at: of `results`, and of `known_failures`.
  IdRange results;
  IdRange failures;
};

class SuspicionTable {
 public:
  explicit SuspicionTable(Connection& connection) : connection_(connection) {}

  Result<std::int64_t> NextId();
  Status Save(const Suspicion& suspicion);  // inserts or replaces it
  Status Remove(std::int64_t id);           // if it is there
  // Removes damaged rows that are older: which results they cover is lost.
  Result<std::optional<Suspicion>> Oldest();
  // Whether the worker's measurements of this time are suspected. Also true for those that came
  // after the suspicion: they answer once all suspicions are worked off.
  Result<bool> Covers(const std::string& worker, WallTime time);

 private:
  Connection& connection_;
};

}  // namespace loopfleet::storage
