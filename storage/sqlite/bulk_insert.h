#pragma once
// RowFeed: new rows of one table, gathered while a transaction is put together and written by one
// statement, which reads them where they lie. A statement for each row spends more time on being
// bound, begun and ended than on its row.
//
// Values are added in the order of the table's columns; a checksum is of all that its row has so
// far. What was gathered is in no query's answer until Flush().

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

  // `insert` is a literal: "INSERT OR ROLLBACK INTO t SELECT c0, c1 FROM row_feed". (Where a row
  // is refused the whole transaction is undone, so SQLite need not be able to undo the statement.)
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
  RowFeed& Copy(Query& row, int columns);       // its next ones, as they are
  RowFeed& AddValues(std::string_view values);  // several, as row_bytes.h has them
  RowFeed& AddChecksum();
  // The row is complete. Writes what has gathered if that is much.
  Status EndRow();

  Status Flush();
  void Forget();  // the transaction was undone
  const std::string& bytes() const { return bytes_; }

 private:
  RowFeed& AddInt64(std::int64_t value);

  Connection& connection_;
  const char* const insert_;
  std::string bytes_;              // in the form of row_bytes.h
  std::vector<std::size_t> rows_;  // complete ones
  std::size_t begun_at_ = 0;       // the row under way
};

}  // namespace loopfleet::storage
