#pragma once
// DeviceStateTable: DeviceState <-> row of `device_states`: the readings of a GPU's sensors during
// a measurement. Results of devices without sensors have no row.

#include <optional>

#include "common/base/result.h"
#include "common/job/measurement.h"
#include "storage/sqlite/result_index/result_keys.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class DeviceStateTable {
 public:
  explicit DeviceStateTable(Connection& connection) : connection_(connection) {}

  Status Insert(ResultId result, const DeviceState& state);
  // kCorrupt: the row is damaged.
  Result<std::optional<DeviceState>> Find(ResultId result);

 private:
  Connection& connection_;
};

}  // namespace loopfleet::storage
