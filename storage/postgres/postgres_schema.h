#pragma once
// Brings the schema `loopfleet` of a PostgreSQL database to this program's version
// (storage/postgres/migrations/*.sql, built in).

#include <pqxx/pqxx>

#include "common/base/result.h"

namespace loopfleet::storage {

// Names the advisory lock under which the schema, and its partitions, are changed.
inline constexpr long kSchemaLock = 0x6c704674;  // "lpFt"

// Makes the schema or runs the missing migrations, in one transaction, and makes it the schema that
// this connection's statements mean, without compiling their plans. pqxx's exceptions pass through.
//   kInvalid  the schema is of a newer version
Status BringToVersion(pqxx::connection& connection);

}  // namespace loopfleet::storage
