-- Version 12: who gave a verdict on a failing tree, and which history of the database this is.

-- A known failure is one worker's verdict; two hosts that agree answer for a whole class. Earlier
-- versions did not say whose verdict it was, so theirs are dropped: those trees are run once more.
DROP TABLE known_failures;
CREATE TABLE known_failures (
  id INTEGER PRIMARY KEY,
  tree_key BLOB NOT NULL CHECK (length(tree_key) = 16),
  conditions INTEGER NOT NULL,         -- conditions.id
  code INTEGER NOT NULL,               -- failure_codes.code
  cut_above_ns INTEGER NOT NULL,       -- of CUT: the bound that a run is known to be above; else 0
  batch INTEGER NOT NULL,              -- of the outcome
  sequence INTEGER NOT NULL,
  failed_at INTEGER NOT NULL,
  worker TEXT NOT NULL,                -- whose verdict it is; one outcome may have several
  host TEXT NOT NULL,                  -- that worker's
  checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX known_failures_outcome ON known_failures (batch, sequence);

-- A restored snapshot is another history of the same database: what was accepted after the snapshot
-- is not in it, and its numbers must not be given to others. So it gets another incarnation, and its
-- numbers jump.
ALTER TABLE writer ADD COLUMN incarnation BLOB NOT NULL DEFAULT x'';  -- 16 random bytes
ALTER TABLE writer ADD COLUMN is_snapshot INTEGER NOT NULL DEFAULT 0; -- until it is first written
ALTER TABLE writer ADD COLUMN first_batch INTEGER NOT NULL DEFAULT 1; -- the least number of a new one
UPDATE writer SET incarnation = randomblob(16);

-- Programs of version 11 do not know the columns.
UPDATE writer SET oldest_program = 12, schema_version = 12;
