-- Version 11: batches that finished long ago can be pruned, and a newer schema says which programs
-- may still write it.

-- The oldest program that may write this database, by the version of its schema. A migration that
-- only adds tables, indices and views leaves it; one after which an older program's writes would
-- fail or be wrong raises it (storage/sqlite/migrations.h). Programs before version 11 do not look.
ALTER TABLE writer ADD COLUMN oldest_program INTEGER NOT NULL DEFAULT 11;
-- The version of the schema once more, which each later migration sets: an older program takes
-- PRAGMA user_version alone, a single number in the file's header, for damage.
ALTER TABLE writer ADD COLUMN schema_version INTEGER NOT NULL DEFAULT 11;

-- One row for each pass that removed batches: by which rule, and how much. Each step of a pass is
-- one transaction with its row. Results stay.
CREATE TABLE prunings (
  id INTEGER PRIMARY KEY,              -- 1, 2, 3 ...
  asked_by TEXT NOT NULL,              -- 'loopfleet db prune', 'loopfleet-coordinator'
  begun_at INTEGER NOT NULL,
  last_step_at INTEGER NOT NULL,
  finished_before INTEGER NOT NULL,    -- the rule: batches that finished before
  removing INTEGER NOT NULL,           -- the batch whose rows are being removed; 0: none. Only the
                                       -- newest row counts: a later pass goes on with the batch
  batches INTEGER NOT NULL,            -- rows removed, of each table
  requests INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  outcomes INTEGER NOT NULL,
  known_failures INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

-- What a batch consists of is found without reading whole tables.
CREATE INDEX requests_batch ON requests (batch);
CREATE INDEX known_failures_outcome ON known_failures (batch, sequence);
