#include "storage/sqlite/bulk_insert.h"

#include <utility>

#include "storage/sqlite/row_bytes.h"

namespace loopfleet::storage {
namespace {

constexpr std::size_t kFlushBytes = 1 << 20;  // bytes; still fits a core's own cache

}  // namespace

RowFeed& RowFeed::AddInt64(std::int64_t value) {
  storage::AppendInt64(bytes_, value);
  return *this;
}

RowFeed& RowFeed::Add(double value) {
  AppendDouble(bytes_, value + 0.0);  // no negative zero, as in Query::Add
  return *this;
}

RowFeed& RowFeed::Add(std::string_view text) {
  AppendValue(bytes_, SQLITE_TEXT, text);
  return *this;
}

RowFeed& RowFeed::Add(std::span<const std::uint8_t> blob) {
  AppendValue(bytes_, SQLITE_BLOB, {reinterpret_cast<const char*>(blob.data()), blob.size()});
  return *this;
}

RowFeed& RowFeed::AddNull() {
  AppendValue(bytes_, SQLITE_NULL, {});
  return *this;
}

RowFeed& RowFeed::Copy(Query& row, int columns) {
  for (int column = 0; column < columns; ++column) {
    switch (row.Type()) {
      case SQLITE_INTEGER: AddInt64(row.Int64()); break;
      case SQLITE_FLOAT: Add(row.Double()); break;
      case SQLITE_TEXT: Add(row.Text()); break;
      case SQLITE_BLOB: Add(row.Blob()); break;
      default: row.Skip(); AddNull();
    }
  }
  return *this;
}

RowFeed& RowFeed::AddValues(std::string_view values) {
  bytes_.append(values);
  return *this;
}

RowFeed& RowFeed::AddChecksum() {
  return AddInt64(ChecksumOf(std::string_view(bytes_).substr(row_begin_)));
}

Status RowFeed::EndRow() {
  rows_.push_back(std::exchange(row_begin_, bytes_.size()));
  return bytes_.size() < kFlushBytes ? Status{} : Flush();
}

Status RowFeed::Flush() {
  if (rows_.empty()) return {};
  Status written = connection_.InsertFrom({.bytes = &bytes_, .rows = rows_}, insert_);
  Forget();
  return written;
}

void RowFeed::Forget() {
  bytes_.clear();
  rows_.clear();
  row_begin_ = 0;
}

}  // namespace loopfleet::storage
