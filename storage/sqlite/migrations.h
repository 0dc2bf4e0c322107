#pragma once
// Migrations: brings a database to the schema of this version (storage/sqlite/migrations/*.sql,
// built in).
//
// Going back to an older program: a schema that is newer than a program can still be used by it if
// writer.oldest_program says so. Rule for a new migration: it leaves that number only if it adds
// tables, indices, views and columns of views and nothing else (statements of older programs know a
// table's columns by their order), and if the database stays right when an older program writes it
// and knows none of them. Otherwise it ends with UPDATE writer SET oldest_program = <its own
// number>. Each sets writer.schema_version. Programs before version 11 refuse every newer schema.

#include "common/base/result.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

// kInvalid: neither empty nor a loopfleet database, or of a newer version that this program may not
// write. kCorrupt: its header and its table `writer` state different versions. Changes nothing.
Status CheckOrigin(Connection& connection);

// Creates the schema in an empty file, or runs the missing migrations, in one transaction. A newer
// schema stays. For the writer only, after CheckOrigin().
Status Migrate(Connection& connection);

// Programs whose schema is older than `version` may write the database no more. For the writer
// only.
Status RaiseOldestProgram(Connection& connection, int version);

// kInvalid: an older schema than this program's, or a newer one that it may not write. Changes
// nothing.
Status CheckSchema(Connection& connection);

}  // namespace loopfleet::storage
