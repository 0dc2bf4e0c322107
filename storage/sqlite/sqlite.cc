#include "storage/sqlite/sqlite.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "storage/sqlite/row_bytes.h"
#include "storage/sqlite/row_feed_table.h"

namespace loopfleet::storage {
namespace {

ErrorKind KindOf(int code, int system_errno) {
  switch (code) {  // extended codes
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID: return ErrorKind::kExists;
    default: break;
  }
  switch (code & 0xff) {
    case SQLITE_FULL: return ErrorKind::kFull;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return ErrorKind::kCorrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return ErrorKind::kUnavailable;
    case SQLITE_CONSTRAINT: return ErrorKind::kInvalid;
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH: return ErrorKind::kInvalid;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      // A full disk appears as this when a file beside the database cannot grow.
      return system_errno == ENOSPC || system_errno == EDQUOT ? ErrorKind::kFull
                                                              : ErrorKind::kSystem;
    default: return ErrorKind::kSystem;
  }
}

std::string PathOf(sqlite3* database) {
  const char* path = sqlite3_db_filename(database, "main");
  return path ? path : "?";
}

std::unexpected<Error> FailWith(sqlite3* database, int code) {
  return Fail(KindOf(code, sqlite3_system_errno(database)),
              fmt::format("database {}: {} (sqlite {})", PathOf(database), sqlite3_errmsg(database),
                          sqlite3_extended_errcode(database)));
}

std::string_view Chars(const void* data, int size) {
  return data == nullptr
             ? std::string_view{}
             : std::string_view(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

}  // namespace

Query::Query(Query&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      row_(other.row_),
      parameter_(other.parameter_),
      column_(other.column_),
      summed_(other.summed_),
      bind_code_(other.bind_code_),
      pieces_bound_(other.pieces_bound_),
      finalize_after_run_(other.finalize_after_run_) {}

Query::~Query() {
  if (statement_ == nullptr) return;
  if (finalize_after_run_) {
    sqlite3_finalize(statement_);
    return;
  }
  sqlite3_reset(statement_);           // its error was reported by Next()
  sqlite3_clear_bindings(statement_);  // they point to bytes that may be gone
}

void Query::Note(int code) {
  if (bind_code_ == SQLITE_OK) bind_code_ = code;
}

Query& Query::AddInt64(std::int64_t value) {
  AppendInt64(row_->bytes, value);
  Note(sqlite3_bind_int64(statement_, ++parameter_, value));
  return *this;
}

Query& Query::Add(double value) {
  // No negative zero: SQLite may return it positive, and the checksum would differ.
  value += 0.0;
  AppendDouble(row_->bytes, value);
  Note(sqlite3_bind_double(statement_, ++parameter_, value));
  return *this;
}

// Texts and blobs are bound when the statement runs, from the bytes that the checksum covers.
Query& Query::Add(std::string_view text) {
  AppendValue(row_->bytes, SQLITE_TEXT, text);
  row_->pieces.push_back({.parameter = ++parameter_,
                          .type = SQLITE_TEXT,
                          .offset = row_->bytes.size() - text.size(),
                          .size = text.size()});
  return *this;
}

Query& Query::Add(std::span<const std::uint8_t> blob) {
  AppendValue(row_->bytes, SQLITE_BLOB, {reinterpret_cast<const char*>(blob.data()), blob.size()});
  row_->pieces.push_back({.parameter = ++parameter_,
                          .type = SQLITE_BLOB,
                          .offset = row_->bytes.size() - blob.size(),
                          .size = blob.size()});
  return *this;
}

void Query::BindPieces(Lifetime lifetime) {
  if (std::exchange(pieces_bound_, true)) return;
  const auto destructor = lifetime == Lifetime::kThisStep ? SQLITE_STATIC : SQLITE_TRANSIENT;
  for (const Piece& piece : row_->pieces) {
    const char* data = row_->bytes.data() + piece.offset;
    if (piece.type == SQLITE_TEXT) {
      Note(sqlite3_bind_text64(statement_, piece.parameter, data, piece.size, destructor,
                               SQLITE_UTF8));
    } else if (piece.size == 0) {  // a blob without bytes, not NULL
      Note(sqlite3_bind_zeroblob(statement_, piece.parameter, 0));
    } else {
      Note(sqlite3_bind_blob64(statement_, piece.parameter, data, piece.size, destructor));
    }
  }
  row_->pieces.clear();
}

Query& Query::AddNull() {
  AppendValue(row_->bytes, SQLITE_NULL, {});
  Note(sqlite3_bind_null(statement_, ++parameter_));
  return *this;
}

Query& Query::AddChecksum() { return AddInt64(ChecksumOf(row_->bytes)); }

Result<bool> Query::Step() {
  if (bind_code_ != SQLITE_OK) return FailWith(database_, bind_code_);
  column_ = 0;
  summed_ = 0;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return FailWith(database_, code);
}

Result<bool> Query::Next() {
  BindPieces(Lifetime::kUntilReset);
  return Step();
}

Status Query::Run() {
  BindPieces(Lifetime::kThisStep);  // it runs to its end, and is reset before the bytes change
  LF_TRY(const bool row, Step());
  LF_CHECK(!row, "a row from {}", sqlite3_sql(statement_));
  return {};
}

int Query::Type() const { return sqlite3_column_type(statement_, column_); }

bool Query::IsNull() const { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }

std::int64_t Query::Int64() { return sqlite3_column_int64(statement_, column_++); }

double Query::Double() { return sqlite3_column_double(statement_, column_++); }

std::string_view Query::Text() {
  const int column = column_++;
  const void* data = sqlite3_column_text(statement_, column);
  return Chars(data, sqlite3_column_bytes(statement_, column));
}

std::span<const std::uint8_t> Query::Blob() {
  const int column = column_++;
  const void* data = sqlite3_column_blob(statement_, column);
  return {static_cast<const std::uint8_t*>(data),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::optional<std::int64_t> Query::OptionalInt64() {
  if (!IsNull()) return Int64();
  Skip();
  return std::nullopt;
}

std::optional<std::string> Query::OptionalText() {
  if (!IsNull()) return std::string(Text());
  Skip();
  return std::nullopt;
}

std::string Query::KeyText() {
  if (sqlite3_column_type(statement_, column_) != SQLITE_BLOB) return std::string(Text());
  std::string hex;
  for (const std::uint8_t byte : Blob()) hex += fmt::format("{:02x}", byte);
  return hex;
}

bool Query::ChecksumMatches() {
  // A second checksum in a row continues where the first one ended.
  if (summed_ == 0) row_->bytes.clear();
  for (int& column = summed_; column < column_; ++column) {
    const int type = sqlite3_column_type(statement_, column);
    switch (type) {
      case SQLITE_INTEGER:
        AppendInt64(row_->bytes, sqlite3_column_int64(statement_, column));
        break;
      case SQLITE_FLOAT:
        AppendDouble(row_->bytes, sqlite3_column_double(statement_, column));
        break;
      default: {
        const void* data = sqlite3_column_blob(statement_, column);
        AppendValue(row_->bytes, type, Chars(data, sqlite3_column_bytes(statement_, column)));
      }
    }
  }
  const bool is_number = sqlite3_column_type(statement_, column_) == SQLITE_INTEGER;
  return Int64() == ChecksumOf(row_->bytes) && is_number;
}

Result<std::unique_ptr<Connection>> Connection::Open(const std::filesystem::path& path,
                                                     Access access,
                                                     std::chrono::milliseconds busy_wait) {
  // Memory accounting takes a process-wide mutex on each allocation, and is not used. (No effect if
  // SQLite is already in use.)
  [[maybe_unused]] static const int kConfigured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (access == Access::kReadOnly ? SQLITE_OPEN_READONLY
                                                 : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  std::unique_ptr<Connection> connection(new Connection(database));  // closes on failure, too
  std::error_code error;
  if (code != SQLITE_OK && access == Access::kReadOnly && !std::filesystem::exists(path, error)) {
    return Fail(ErrorKind::kNotFound, fmt::format("there is no database {}", path.string()));
  }
  if (code != SQLITE_OK) {
    return Fail(KindOf(code, sqlite3_system_errno(database)),
                fmt::format("cannot open database {}: {}", path.string(), sqlite3_errstr(code)));
  }
  sqlite3_busy_timeout(database, static_cast<int>(busy_wait.count()));
  // A damaged or hostile file must not run code through its schema.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  if (access != Access::kReadOnly) {
    const int registered = RegisterRowFeed(database, &connection->fed_);
    if (registered != SQLITE_OK) return FailWith(database, registered);
  }
  LF_TRY_VOID(connection->Run("PRAGMA cell_size_check = ON"));
  // Anything less loses acknowledged rows when the power fails. With a log, EXTRA means FULL. While
  // SQLite still has a rollback journal (when the file is created), EXTRA also makes the journal's
  // removal durable: a journal that reappears after a power failure undoes the creation of the
  // file, and everything acknowledged since.
  LF_TRY_VOID(connection->Run("PRAGMA synchronous = EXTRA"));
  return connection;
}

Status Connection::RunOnSchema(const char* sql) {
  sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  const Status done = Run(sql);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return done;
}

Connection::~Connection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(database_);
}

Result<Query> Connection::Start(const char* sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (statement == nullptr) {
    const int code =
        sqlite3_prepare_v3(database_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return FailWith(database_, code);
  }
  LF_CHECK(!sqlite3_stmt_busy(statement), "already running: {}", sql);
  row_.bytes.clear();
  row_.pieces.clear();
  return Query(database_, statement, &row_);
}

Result<Query> Connection::StartOnce(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr);
  if (code != SQLITE_OK) return FailWith(database_, code);
  row_.bytes.clear();
  row_.pieces.clear();
  Query query(database_, statement, &row_);
  query.finalize_after_run_ = true;
  return query;
}

Status Connection::InsertFrom(const FedRows& rows, const char* insert) {
  LF_TRY(Query query, Start(insert));
  fed_ = &rows;
  Status written = query.Run();
  fed_ = nullptr;
  return written;
}

void Connection::AfterCommit(std::function<void(std::uint32_t pages)> committed) {
  after_commit_ = std::move(committed);
  const auto call = [](void* function, sqlite3*, const char*, int pages) {
    (*static_cast<std::function<void(std::uint32_t)>*>(function))(
        static_cast<std::uint32_t>(pages));
    return SQLITE_OK;
  };
  sqlite3_wal_hook(database_, after_commit_ ? +call : nullptr, &after_commit_);
}

Status Connection::FoldLog() {
  const int code =
      sqlite3_wal_checkpoint_v2(database_, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY) return {};
  return FailWith(database_, code);
}

Status Connection::SyncFile() {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(database_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  const int code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
  if (code == SQLITE_OK) return {};
  return Fail(ErrorKind::kSystem,
              fmt::format("database {}: cannot be synced (sqlite {})", path(), code));
}

Status Connection::CopyFrom(Connection& other) {
  sqlite3_backup* backup = sqlite3_backup_init(database_, "main", other.database_, "main");
  if (backup == nullptr) return FailWith(database_, sqlite3_errcode(database_));
  // In one step, which is one read transaction: between steps, each commit of the writer would
  // restart the copy.
  const int step = sqlite3_backup_step(backup, -1);
  const int code = sqlite3_backup_finish(backup);
  if (step == SQLITE_DONE && code == SQLITE_OK) return {};
  return FailWith(database_, code == SQLITE_OK ? step : code);
}

Status Connection::Run(const char* sql) {
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return FailWith(database_, code);
  return {};
}

Result<std::int64_t> Connection::Number(const char* sql) {
  LF_TRY(Query query, Start(sql));
  LF_TRY(const bool row, query.Next());
  if (!row) return Fail(ErrorKind::kCorrupt, fmt::format("database: no row for: {}", sql));
  return query.Int64();
}

bool Connection::InTransaction() const { return sqlite3_get_autocommit(database_) == 0; }

std::string Connection::path() const { return PathOf(database_); }

}  // namespace loopfleet::storage
