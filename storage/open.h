#pragma once
// Opens a database with its engine. The only place outside the engines' folders that knows them: a
// path is an SQLite file (storage/sqlite/).

#include <filesystem>
#include <memory>

#include "common/base/result.h"
#include "storage/store.h"
#include "storage/store_reader.h"

namespace loopfleet::storage {

// Errors: those of SqliteStore::Open and SqliteReader::Open.
Result<std::unique_ptr<Store>> OpenStore(const std::filesystem::path& database);
// Without the Store's help; finding the first result takes longer.
Result<std::unique_ptr<StoreReader>> OpenReader(const std::filesystem::path& database);

}  // namespace loopfleet::storage
