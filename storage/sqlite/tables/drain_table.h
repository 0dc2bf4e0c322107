#pragma once
// DrainTable: WorkersDrained <-> row of `drains`.

#include <string>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class DrainTable {
 public:
  explicit DrainTable(Connection& connection) : connection_(connection) {}

  Status Save(const WorkersDrained& drained);  // inserts or replaces it
  Status Remove(const std::string& target);    // if it is there
  // All drains in force. A damaged row still drains its target; its reason says that it is damaged.
  Result<std::vector<WorkersDrained>> List();

 private:
  Connection& connection_;
};

}  // namespace loopfleet::storage
