#pragma once
// CheckDatabase: checks that every row is what was written, by the rows' checksums and the counts
// that batches keep. An engine implements it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace loopfleet::storage {

struct CheckedTable {
  std::string name;
  std::uint64_t rows = 0;
  std::uint64_t damaged = 0;
};

// What is wrong with one row, or with a count of rows.
struct Damage {
  std::string table;
  std::string row;  // its primary key: "12.3" is batch 12, job 3
  std::string what;
};

struct DatabaseCheck {
  std::int64_t schema_version = 0;
  // Also those that a repair replaced (outcome_repair.h), whose damage counts only here.
  std::vector<CheckedTable> tables;
  std::vector<Damage> damage;  // at most kMaxDamageListed
  std::uint64_t damage_count = 0;
  bool ok() const { return damage_count == 0; }
};
inline constexpr std::size_t kMaxDamageListed = 1000;

// Reads everything; changes nothing; a coordinator may be writing meanwhile.
//   kNotFound, kInvalid (not a loopfleet database, or a newer one), kSystem
// Pages that cannot be read at all are damage, not an error.
Result<DatabaseCheck> CheckDatabase(const std::filesystem::path& path);

}  // namespace loopfleet::storage
