#pragma once
// Migrations: brings a database to the schema of this version (storage/sqlite/migrations/*.sql,
// built in).

#include "common/base/result.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

// kInvalid: neither empty nor a loopfleet database, or of a newer version. Changes nothing.
Status CheckOrigin(Connection& connection);

// Creates the schema in an empty file, or runs the missing migrations; each step is one
// transaction. For the writer only, after CheckOrigin().
Status Migrate(Connection& connection);

// kInvalid: not exactly this version's schema. Changes nothing.
Status CheckSchema(Connection& connection);

}  // namespace loopfleet::storage
