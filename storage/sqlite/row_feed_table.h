#pragma once
// The table `row_feed`, from which an INSERT reads the rows that a RowFeed (bulk_insert.h) has
// gathered, where they lie. Every connection that writes has one.

#include <sqlite3.h>

#include <cstddef>
#include <span>
#include <string>

namespace loopfleet::storage {

inline constexpr int kMaxFedColumns = 32;

// Rows in the form of row_bytes.h, and where each begins.
struct FedRows {
  const std::string* bytes = nullptr;
  std::span<const std::size_t> rows;
};

// `*source` is what the table holds; null: reading it is an error. Returns SQLite's code.
int RegisterRowFeed(sqlite3* database, const FedRows** source);

}  // namespace loopfleet::storage
