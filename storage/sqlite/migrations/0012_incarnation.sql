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
