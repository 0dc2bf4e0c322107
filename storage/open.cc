#include "storage/open.h"

#include "storage/sqlite/sqlite_reader.h"
#include "storage/sqlite/sqlite_store.h"

namespace loopfleet::storage {

Result<std::unique_ptr<Store>> OpenStore(const std::filesystem::path& database) {
  return SqliteStore::Open(database);
}

Result<std::unique_ptr<StoreReader>> OpenReader(const std::filesystem::path& database) {
  return SqliteReader::Open(database);
}

}  // namespace loopfleet::storage
