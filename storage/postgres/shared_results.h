#pragma once
// SharedResults: finds what other coordinators measured and copied into one PostgreSQL database
// (storage/postgres/archive.h). Of CPUs only: a GPU's state at the time is not copied.
//
// One thread. After an error, open another one.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/uuid.h"
#include "storage/record.h"

namespace loopfleet::storage {

class SharedResults {
 public:
  // Connects. Errors: those of PostgresArchive::Open.
  //   incarnation  of the database whose own results do not count
  static Result<std::unique_ptr<SharedResults>> Open(const std::string& url,
                                                     const Uuid& incarnation);
  ~SharedResults();

  // Whether any other coordinator has been here.
  Result<bool> HasOthers();
  // Element i: the newest measurement that matches key i as StoreReader::FindResult demands, with
  // `elsewhere` set and its stages zero; none: null. A figure in doubt does not count, nor one
  // whose samples were removed before it was copied.
  Result<std::vector<StoredAnswer>> Find(std::span<const ResultKey> keys);

 private:
  struct Impl;
  explicit SharedResults(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::storage
