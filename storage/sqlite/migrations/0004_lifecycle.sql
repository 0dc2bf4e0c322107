-- Version 4: what operators said of workers, and failures that are known.

-- Workers that take nothing new. A row stands until they are resumed.
CREATE TABLE drains (
  target TEXT PRIMARY KEY,             -- a host's name, or a worker's name or id
  reason TEXT NOT NULL,
  said_by TEXT NOT NULL,
  since INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Failures that the same tree would have again: they answer for it, as results do. A row points to
-- the outcome that says it all.
CREATE TABLE known_failures (
  id INTEGER PRIMARY KEY,
  tree_key BLOB NOT NULL CHECK (length(tree_key) = 16),
  conditions INTEGER NOT NULL,         -- conditions.id
  code INTEGER NOT NULL,               -- failure_codes.code
  cut_above_ns INTEGER NOT NULL,       -- of CUT: the bound that a run is known to be above; else 0
  batch INTEGER NOT NULL,              -- of the outcome
  sequence INTEGER NOT NULL,
  failed_at INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
