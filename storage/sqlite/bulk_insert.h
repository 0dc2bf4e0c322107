#pragma once
// RowFeed: inserts many rows into one table with one statement. Rows are gathered while a
// transaction is put together, and the statement reads them in place. A statement for each row
// would cost more to bind, start and end than its row.
//
// Values are added in the order of the table's columns. A checksum covers the row's values so far.
// Queries do not see gathered rows before Flush(). Used by its connection's thread.

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "storage/sqlite/row_feed_table.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class RowFeed {
 public:
  static constexpr int kMaxColumns = kMaxFedColumns;

  // `insert` is a literal: "INSERT OR ROLLBACK INTO t SELECT c0, c1 FROM row_feed". (A refused row
  // rolls back the whole transaction, so SQLite need not be able to undo the statement.)
  RowFeed(Connection& connection, const char* insert) : connection_(connection), insert_(insert) {}

  RowFeed& Add(double value);
  RowFeed& Add(std::string_view text);
  RowFeed& Add(std::span<const std::uint8_t> blob);
  RowFeed& AddNull();
  template <std::integral T>
  RowFeed& Add(T value) {  // 64-bit unsigned values keep their bits
    return AddInt64(static_cast<std::int64_t>(value));
  }
  template <class T>
  RowFeed& Add(const std::optional<T>& value) {
    return value ? Add(*value) : AddNull();
  }
  RowFeed& Copy(Query& row, int columns);       // the next columns of `row`, unchanged
  RowFeed& AddValues(std::string_view values);  // several, encoded as in row_bytes.h
  RowFeed& AddChecksum();
  // Ends the row. Flushes once 1 MiB has been gathered.
  Status EndRow();

  Status Flush();
  void Forget();  // the transaction was rolled back
  const std::string& bytes() const { return bytes_; }

 private:
  RowFeed& AddInt64(std::int64_t value);

  Connection& connection_;
  const char* const insert_;
  std::string bytes_;              // encoded as in row_bytes.h
  std::vector<std::size_t> rows_;  // offset of each complete row
  std::size_t row_begin_ = 0;      // offset of the current row
};

}  // namespace loopfleet::storage
