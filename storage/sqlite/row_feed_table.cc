#include "storage/sqlite/row_feed_table.h"

#include <cstring>

#include "storage/sqlite/row_bytes.h"

namespace loopfleet::storage {
namespace {

// SQLite's side: a virtual table of columns c0 .. c31 whose rows are those of the feed being
// flushed. It is read from the first row to the last, and each row from left to right.
struct FeedTable {
  sqlite3_vtab base;
  const FedRows** source;
};

struct FeedCursor {
  sqlite3_vtab_cursor base;
  const FedRows* feed;
  std::size_t row;
  int column;            // the one at value_at
  std::size_t value_at;  // offset in the feed's bytes
};

void BeginRow(FeedCursor& cursor) {
  cursor.column = 0;
  if (cursor.row < cursor.feed->rows.size()) cursor.value_at = cursor.feed->rows[cursor.row];
}

std::uint32_t LengthAt(const std::string& bytes, std::size_t value_at) {
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + value_at + 1, sizeof length);
  return length;
}

FeedCursor& Of(sqlite3_vtab_cursor* cursor) { return *reinterpret_cast<FeedCursor*>(cursor); }

int Connect(sqlite3* database, void* source, int, const char* const*, sqlite3_vtab** table,
            char**) {
  std::string declaration = "CREATE TABLE feed(";
  for (int column = 0; column < kMaxFedColumns; ++column) {
    declaration += (column == 0 ? "c" : ",c") + std::to_string(column);
  }
  const int code = sqlite3_declare_vtab(database, (declaration + ")").c_str());
  if (code != SQLITE_OK) return code;
  sqlite3_vtab_config(database, SQLITE_VTAB_DIRECTONLY);
  auto* made = new FeedTable{.base = {}, .source = static_cast<const FedRows**>(source)};
  *table = &made->base;
  return SQLITE_OK;
}

int Disconnect(sqlite3_vtab* table) {
  delete reinterpret_cast<FeedTable*>(table);
  return SQLITE_OK;
}

int BestIndex(sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; }

int Open(sqlite3_vtab* table, sqlite3_vtab_cursor** cursor) {
  auto* made = new FeedCursor{.base = {},
                              .feed = *reinterpret_cast<FeedTable*>(table)->source,
                              .row = 0,
                              .column = 0,
                              .value_at = 0};
  *cursor = &made->base;
  return made->feed != nullptr ? SQLITE_OK : SQLITE_MISUSE;
}

int Close(sqlite3_vtab_cursor* cursor) {
  delete &Of(cursor);
  return SQLITE_OK;
}

int Filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  Of(cursor).row = 0;
  BeginRow(Of(cursor));
  return SQLITE_OK;
}

int Next(sqlite3_vtab_cursor* cursor) {
  ++Of(cursor).row;
  BeginRow(Of(cursor));
  return SQLITE_OK;
}

int Eof(sqlite3_vtab_cursor* cursor) {
  return Of(cursor).row >= Of(cursor).feed->rows.size() ? 1 : 0;
}

int Column(sqlite3_vtab_cursor* base, sqlite3_context* context, int column) {
  FeedCursor& cursor = Of(base);
  const std::string& bytes = *cursor.feed->bytes;
  if (column < cursor.column) BeginRow(cursor);
  for (; cursor.column < column; ++cursor.column) {
    cursor.value_at += kValueHeadBytes + LengthAt(bytes, cursor.value_at);
  }
  const char* data = bytes.data() + cursor.value_at + kValueHeadBytes;
  const std::uint32_t length = LengthAt(bytes, cursor.value_at);
  switch (bytes[cursor.value_at]) {
    case SQLITE_INTEGER: {
      std::int64_t value = 0;
      std::memcpy(&value, data, sizeof value);
      sqlite3_result_int64(context, value);
      break;
    }
    case SQLITE_FLOAT: {
      double value = 0;
      std::memcpy(&value, data, sizeof value);
      sqlite3_result_double(context, value);
      break;
    }
    case SQLITE_TEXT:
      sqlite3_result_text64(context, data, length, SQLITE_STATIC, SQLITE_UTF8);
      break;
    case SQLITE_BLOB: sqlite3_result_blob64(context, data, length, SQLITE_STATIC); break;
    default: sqlite3_result_null(context);
  }
  return SQLITE_OK;
}

int RowId(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
  *id = static_cast<sqlite3_int64>(Of(cursor).row);
  return SQLITE_OK;
}

// Without xCreate the module has exactly one table, of its own name.
const sqlite3_module kModule{.iVersion = 0,
                             .xCreate = nullptr,
                             .xConnect = Connect,
                             .xBestIndex = BestIndex,
                             .xDisconnect = Disconnect,
                             .xDestroy = nullptr,
                             .xOpen = Open,
                             .xClose = Close,
                             .xFilter = Filter,
                             .xNext = Next,
                             .xEof = Eof,
                             .xColumn = Column,
                             .xRowid = RowId};

}  // namespace

int RegisterRowFeed(sqlite3* database, const FedRows** source) {
  return sqlite3_create_module_v2(database, "row_feed", &kModule, source, nullptr);
}

}  // namespace loopfleet::storage
