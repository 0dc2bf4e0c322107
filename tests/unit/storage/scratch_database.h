#pragma once
// ScratchDatabase: a temporary directory for each test, and a database in it. Tests can also change
// the database by hand, as a person or a fault would.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/sqlite_reader.h"
#include "storage/sqlite/sqlite_store.h"

namespace loopfleet::storage {

class ScratchDatabase : public ::testing::Test {
 protected:
  ScratchDatabase() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lf_storage_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~ScratchDatabase() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory() const { return directory_; }
  std::filesystem::path path() const { return directory_ / "test.db"; }

  std::unique_ptr<SqliteStore> OpenStore(const StoreOptions& options = {}) {
    auto store = SqliteStore::Open(path(), options);
    if (!store) {
      ADD_FAILURE() << store.error().message;
      std::abort();  // nothing to go on with
    }
    return *std::move(store);
  }
  std::unique_ptr<StoreReader> OpenReader() {
    auto reader = SqliteReader::Open(path());
    if (!reader) {
      ADD_FAILURE() << reader.error().message;
      std::abort();
    }
    return *std::move(reader);
  }

  // By hand, over a connection of its own.
  std::unique_ptr<Connection> OpenByHand() {
    return Connection::Open(path(), Access::kReadWriteCreate, std::chrono::seconds(5)).value();
  }
  void RunByHand(const std::string& sql) {
    const Status status = OpenByHand()->Run(sql.c_str());
    ASSERT_TRUE(status) << sql << ": " << status.error().message;
  }
  std::int64_t NumberByHand(const char* sql) { return OpenByHand()->Number(sql).value(); }

  enum class PageKind { kMiddleLeaf, kMiddleInternal, kLastLeaf };
  // Overwrites one page of a table's or an index's tree with nonsense. The file must be closed, so
  // that all of it is in the file and not in the log.
  void DamagePage(std::string_view tree, PageKind kind) {
    const std::string of_kind =
        fmt::format("FROM dbstat WHERE name = '{}' AND pagetype = '{}' AND path <> '/'", tree,
                    kind == PageKind::kMiddleInternal ? "internal" : "leaf");
    const auto pages = NumberByHand(("SELECT count(*) " + of_kind).c_str());
    ASSERT_GT(pages, 1) << tree;
    const auto offset = kind == PageKind::kLastLeaf ? pages - 1 : pages / 2;
    const auto page = NumberByHand(
        fmt::format("SELECT pageno {} ORDER BY path LIMIT 1 OFFSET {}", of_kind, offset).c_str());
    const auto size = NumberByHand("PRAGMA page_size");
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp((page - 1) * size);
    file << std::string(static_cast<std::size_t>(size), '\x5a');
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace loopfleet::storage
