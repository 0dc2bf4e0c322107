-- Version 22: what each restore of a snapshot left behind.

-- One row for each restore. A program of version 21 that restores writes none: the next start of a
-- later one makes up for it (sqlite_store.cc).
CREATE TABLE restores (
  first_batch INTEGER PRIMARY KEY,     -- writer.first_batch, the least number of a new batch since then
  last_batch INTEGER NOT NULL,         -- the newest batch of the snapshot; those between are lost
  unfinished TEXT NOT NULL,            -- its unfinished batches, {"12": outcomes of batch 12}
  lost BLOB NOT NULL                   -- its writer.incarnation; zeros: not known, nor is `unfinished`
) STRICT;

-- Results of other coordinators (version 19) answer nothing here. Programs of version 18 do not know
-- that: with the first such result they may write the database no more
-- (sqlite/tables/foreign_table.cc).
UPDATE writer SET oldest_program = max(oldest_program, 19)
WHERE EXISTS (SELECT 1 FROM foreign_results);

UPDATE writer SET schema_version = 22;
