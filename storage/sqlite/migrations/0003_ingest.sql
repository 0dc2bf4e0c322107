-- Version 3: ingest that stays as quick as it was at the first row, and restarts that replay nothing.

-- An index in the order of a hash puts each new row on a page of its own: 14,000 rows/s at 10 M rows
-- where 43,000 were at the beginning. Which results may answer a question is kept in runs instead:
-- the newest results in memory, and every 262,144 of them as one sorted run that is never changed
-- (storage/sqlite/result_index/result_keys.h). Runs say where to look; only the row itself says what it is.
DROP INDEX results_tree_key;

CREATE TABLE result_key_runs (
  run INTEGER PRIMARY KEY,             -- 1, 2, 3 ...
  first_id INTEGER NOT NULL,           -- results.id from .. to, both included; runs leave no gap
  last_id INTEGER NOT NULL,
  filter BLOB NOT NULL,                -- Bloom filter over the hashes of its entries
  directory BLOB NOT NULL,             -- the first hash of each chunk: little-endian uint64
  checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE result_key_chunks (
  id INTEGER PRIMARY KEY,              -- run * 65536 + place in the run
  entries BLOB NOT NULL,               -- (hash, results.id), little-endian uint64 each, by hash, newest first
  checksum INTEGER NOT NULL
) STRICT;

-- What replaying a job's actions found. Behind the checksum of version 1, with one of their own over
-- the whole row; NULL in rows of an earlier version.
ALTER TABLE jobs ADD COLUMN tree_key BLOB;
ALTER TABLE jobs ADD COLUMN placement TEXT;  -- 'cpu', 'cuda', 'any'
ALTER TABLE jobs ADD COLUMN checksum_3 INTEGER;
