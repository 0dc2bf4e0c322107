-- Version 9: flagging a drifting worker's results takes many short transactions. A row records the
-- rows still to be flagged, so that a restart continues.

CREATE TABLE suspicions (
  id INTEGER PRIMARY KEY,
  worker TEXT NOT NULL,                -- its results and failures of time answer nothing meanwhile
  since INTEGER NOT NULL,              -- those of this moment and later
  flagged_at INTEGER NOT NULL,
  reason TEXT NOT NULL,
  next_result INTEGER NOT NULL,        -- results.id: from here on ..
  last_result INTEGER NOT NULL,        -- .. to here they are to be looked at
  next_failure INTEGER NOT NULL,       -- known_failures.id, likewise
  last_failure INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
