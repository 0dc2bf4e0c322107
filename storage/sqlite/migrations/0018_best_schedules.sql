-- Version 18: the fastest schedules of each program, kept as results come in, so that "which is the
-- best known?" reads a few rows. Results of earlier versions are not entered.

CREATE TABLE best_schedules (
  program BLOB NOT NULL CHECK (length(program) = 16),  -- what is computed (looptree::ProgramKey)
  hardware_class TEXT NOT NULL,
  threads INTEGER NOT NULL,
  cache TEXT NOT NULL,
  subject BLOB NOT NULL CHECK (length(subject) = 16),  -- the tree: results.tree_key
  elapsed_ns REAL NOT NULL,            -- the newest figure of the tree: that of `result`
  result INTEGER NOT NULL,             -- results.id
  batch INTEGER NOT NULL,              -- of the job that measured it, which may have been pruned:
  idx INTEGER NOT NULL,
  benchmark TEXT,                      -- as in jobs
  ir TEXT,
  actions TEXT NOT NULL,
  options TEXT,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (program, hardware_class, threads, cache, subject)
) STRICT, WITHOUT ROWID;
-- A result in doubt leaves it.
CREATE INDEX best_schedules_result ON best_schedules (result);

UPDATE writer SET schema_version = 18;
