#pragma once
// PostgresArchive: the outcomes of any number of coordinators in a PostgreSQL database, schema
// `loopfleet` (storage/postgres/migrations/). One of these writes those of one coordinator; several
// may write into one database at a time.
//
// Guarantee: Append() writes its outcomes and moves the position in one transaction, so each
// outcome is there exactly once, whatever fails and whenever, and also after its database was
// restored from a snapshot, if the lost database is not mirrored again.
//
// One thread. After an error that is not kExists, open another one.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/uuid.h"
#include "storage/outcome_feed.h"
#include "storage/record.h"

namespace loopfleet::storage {

// How far a coordinator's outcomes, and its doubts about figures, are there.
struct ArchivePosition {
  FeedPosition outcomes;
  std::int64_t doubt = 0;  // Doubt::number
};

class PostgresArchive {
 public:
  struct Options {
    // As libpq reads it: "postgresql://user@host/database", or "host=... dbname=...". Passwords
    // come from it, from PGPASSWORD or from ~/.pgpass.
    std::string url;
    Uuid incarnation;  // of the coordinator's database
    // StoreReader::FirstOwnBatch(): outcomes of batches below may be there, under the incarnation
    // that the snapshot was taken of.
    BatchId first_own_batch{1};
    std::string name;  // of it, for people
  };
  // Connects, brings the schema to this version, and enters the coordinator if it is new.
  //   kUnavailable  the server cannot be reached, or the connection was lost
  //   kInvalid      it refuses: no such database or role, no permission, a schema of a newer
  //   version
  static Result<std::unique_ptr<PostgresArchive>> Open(const Options& options);
  ~PostgresArchive();

  Result<ArchivePosition> Position();
  // Writes the outcomes of a step that began at `before`, Position() or the last step's end, and
  // the doubts that follow those which are there.
  //   kExists  another mirror has moved the position: read it again
  Status Append(const FeedPosition& before, const FeedStep& step, const std::vector<Doubt>& doubts);

 private:
  struct Impl;
  explicit PostgresArchive(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::storage
