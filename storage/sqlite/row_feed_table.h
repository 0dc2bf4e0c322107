#pragma once
// The virtual table `row_feed`, from which an INSERT reads the rows that a RowFeed (bulk_insert.h)
// has gathered, in place. Every connection that writes has one.

#include <sqlite3.h>

#include <cstddef>
#include <span>
#include <string>

namespace loopfleet::storage {

inline constexpr int kMaxFedColumns = 32;

// Rows encoded as in row_bytes.h, and the offset of each.
struct FedRows {
  const std::string* bytes = nullptr;
  std::span<const std::size_t> rows;
};

// `*source`: the table's rows; null: reading the table is an error. Returns SQLite's result code.
int RegisterRowFeed(sqlite3* database, const FedRows** source);

}  // namespace loopfleet::storage
