-- Version 14: verdicts on jobs that are not timed (common/job/task.h). All earlier jobs are timed.

CREATE TABLE observations (
  id INTEGER PRIMARY KEY,              -- outcomes.result is minus this id
  kind TEXT NOT NULL,                  -- of its job: "probe"
  benchmark TEXT NOT NULL,             -- of its job, which may have been pruned
  actions TEXT NOT NULL,
  subject BLOB NOT NULL CHECK (length(subject) = 16),
  conditions INTEGER NOT NULL,         -- conditions.id
  "values" TEXT NOT NULL,              -- JSON: name -> number, list of numbers, or text
  worker TEXT NOT NULL,
  observed_at INTEGER NOT NULL,        -- nanoseconds since 1970-01-01 UTC
  checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX observations_subject ON observations (subject);

-- For people: every observed value.
CREATE VIEW v_observations AS
SELECT
  b.id AS observation,
  b.kind AS kind,
  b.benchmark AS benchmark,
  b.actions AS actions,
  v.key AS name,
  v.value AS value,
  b.worker AS worker,
  h.class AS hardware_class,
  strftime('%Y-%m-%dT%H:%M:%fZ', b.observed_at / 1e9, 'unixepoch') AS observed_at
FROM observations b
JOIN conditions c ON c.id = b.conditions
JOIN hardware h ON h.id = c.hardware
JOIN json_each(b."values") v;

-- Programs of version 13 take a result below 0 for damage: with the first observation, they may write
-- the database no more (sqlite/tables/observation_table.cc).
UPDATE writer SET schema_version = 14;
