#pragma once
// ScratchDatabase: a directory of its own for each test, gone with it; and the database in it, also
// by hand, as a person or a fault would change it.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "storage/sqlite/sqlite.h"
#include "storage/store.h"
#include "storage/store_reader.h"

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

  std::unique_ptr<Store> OpenStore(const StoreOptions& options = {}) {
    auto store = Store::Open(path(), options);
    if (!store) {
      ADD_FAILURE() << store.error().message;
      std::abort();  // nothing to go on with
    }
    return *std::move(store);
  }
  std::unique_ptr<StoreReader> OpenReader() {
    auto reader = StoreReader::Open(path());
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

 private:
  std::filesystem::path directory_;
};

}  // namespace loopfleet::storage
