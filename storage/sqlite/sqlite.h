#pragma once
// Connection and Query: SQLite with our error kinds, and rows that carry a checksum.
//
// Parameters are bound, and columns read, in order. A checksum covers everything since the row
// began, so writing and reading a row are two lists of the same shape:
//   query.Add(id).Add(name).AddChecksum();          id = query.Int64(); name = query.Text();
//                                                   if (!query.ChecksumMatches()) ...
//
// One thread at a time uses a Connection and its queries.

#include <sqlite3.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/result.h"

namespace loopfleet::storage {

struct FedRows;

enum class Access { kReadOnly, kReadWriteCreate };

// One run of a prepared statement. The destructor resets the statement for its next run.
class Query {
 public:
  Query(Query&& other) noexcept;
  Query& operator=(Query&&) = delete;
  ~Query();

  // Binds the next parameter. If SQLite refuses one, Next() and Run() fail.
  Query& Add(double value);
  Query& Add(std::string_view text);
  Query& Add(std::span<const std::uint8_t> blob);
  Query& AddNull();
  template <std::integral T>
  Query& Add(T value) {  // 64-bit unsigned values keep their bits
    return AddInt64(static_cast<std::int64_t>(value));
  }
  template <class T>
  Query& Add(const std::optional<T>& value) {
    return value ? Add(*value) : AddNull();
  }
  Query& AddChecksum();  // of every parameter so far, earlier checksums included

  Result<bool> Next();  // moves to the next row and its first column; false: no more rows
  Status Run();         // for a statement without rows; cheaper than Next(): nothing is copied

  // Reads the next column. Text and blobs stay valid until Next().
  bool IsNull() const;  // does not advance
  int Type() const;     // SQLite's type code; does not advance
  std::int64_t Int64();
  double Double();
  std::string_view Text();
  std::span<const std::uint8_t> Blob();
  template <std::integral T>
  T Int() {
    return static_cast<T>(Int64());
  }
  std::optional<std::int64_t> OptionalInt64();
  std::optional<std::string> OptionalText();
  std::string KeyText();  // of any type, for people; a blob in hex
  void Skip() { ++column_; }
  void Rewind() { column_ = 0; }  // to the first column of this row
  // Reads the next column. True: it is the checksum of all columns before it.
  bool ChecksumMatches();

 private:
  friend class Connection;
  // A text or blob parameter, and where it is in row_->bytes.
  struct Piece {
    int parameter;
    int type;
    std::size_t offset;
    std::size_t size;
  };
  // The row being bound: the bytes that the checksum covers, and pieces not yet passed to SQLite.
  struct Row {
    std::string bytes;
    std::vector<Piece> pieces;
  };
  enum class Lifetime { kThisStep, kUntilReset };

  Query(sqlite3* database, sqlite3_stmt* statement, Row* row)
      : database_(database), statement_(statement), row_(row) {}
  Query& AddInt64(std::int64_t value);
  void Note(int code);
  void BindPieces(Lifetime lifetime);
  Result<bool> Step();

  sqlite3* database_;
  sqlite3_stmt* statement_;
  Row* row_;  // borrowed from the connection
  int parameter_ = 0;
  int column_ = 0;
  int summed_ = 0;     // columns of this row whose bytes are in row_->bytes
  int bind_code_ = 0;  // the first error of binding a parameter
  bool pieces_bound_ = false;
  bool finalize_after_run_ = false;  // the statement is finalized after this run
};

// How long a transaction waits for another process that has locked the file, such as a person's
// sqlite3 shell.
inline constexpr std::chrono::milliseconds kBusyWait{5000};

class Connection {
 public:
  // kNotFound: the file to read is not there.
  static Result<std::unique_ptr<Connection>> Open(const std::filesystem::path& path, Access access,
                                                  std::chrono::milliseconds busy_wait);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Prepares the statement on its first use. Statements are cached by the address of their text:
  // pass literals and statics only. A statement cannot run twice at a time, and two cannot be bound
  // at a time: bind all parameters of one, and run it, before the next.
  Result<Query> Start(const char* sql);
  // The same for a text that is not a literal; prepared for this run only.
  Result<Query> StartOnce(const std::string& sql);

  Status Run(const char* sql);  // any number of statements without parameters: pragmas, schema
  // The same, for migrations and repairs: they may also edit the text of the schema.
  Status RunOnSchema(const char* sql);
  Result<std::int64_t> Number(const char* sql);  // the first column of the first row

  // Runs an INSERT that reads these rows from the table row_feed.
  Status InsertFrom(const FedRows& rows, const char* insert);

  // Calls `committed` after each commit, with the number of pages in the log; null: nothing.
  void AfterCommit(std::function<void(std::uint32_t pages)> committed);
  // Copies the log's pages into the file, up to the first page of which a reader needs the older
  // version. Does nothing while another connection does that.
  Status FoldLog();
  // Makes what was copied durable. SQLite does it by itself only once the whole log is folded.
  Status SyncFile();

  // Makes this database a durable copy of the other one's current state.
  Status CopyFrom(Connection& other);

  bool InTransaction() const;
  std::string path() const;

 private:
  explicit Connection(sqlite3* database) : database_(database) {}

  sqlite3* database_;
  std::unordered_map<const char*, sqlite3_stmt*> statements_;
  std::function<void(std::uint32_t)> after_commit_;
  const FedRows* fed_ = nullptr;  // the rows of row_feed; null: none
  Query::Row row_;
};

}  // namespace loopfleet::storage
