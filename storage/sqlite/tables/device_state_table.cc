#include "storage/sqlite/tables/device_state_table.h"

#include "storage/sqlite/damage.h"

namespace loopfleet::storage {

Status DeviceStateTable::Insert(ResultId result, const DeviceState& state) {
  LF_TRY(Query query, connection_.Start("INSERT INTO device_states VALUES (?,?,?,?,?,?)"));
  return query.Add(result)
      .Add(state.temperature_c)
      .Add(state.power_w)
      .Add(state.memory_clock_mhz)
      .Add(state.throttle_reasons)
      .AddChecksum()
      .Run();
}

Result<std::optional<DeviceState>> DeviceStateTable::Find(ResultId result) {
  LF_TRY(Query row, connection_.Start("SELECT * FROM device_states WHERE result = ?"));
  row.Add(result);
  LF_TRY(const bool found, row.Next());
  if (!found) return std::nullopt;
  row.Skip();
  DeviceState state;
  state.temperature_c = row.Double();
  state.power_w = row.Double();
  state.memory_clock_mhz = row.Double();
  state.throttle_reasons = row.Int<std::uint64_t>();
  if (!row.ChecksumMatches()) return Damaged("device_states", result);
  return state;
}

}  // namespace loopfleet::storage
