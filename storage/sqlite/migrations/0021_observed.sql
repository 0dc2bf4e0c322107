-- Version 21: observed values that are blobs, {"sha256": text, "bytes": number} in observations."values"
-- (common/job/observed.h), and observations in doubt. Programs of version 20 take the first for damage,
-- and answer with the second: with the first one of either, they may write the database no more
-- (sqlite/tables/observation_table.cc).

-- Observations that other workers contradict. They answer nothing any more.
CREATE TABLE suspect_observations (
  observation INTEGER PRIMARY KEY,     -- observations.id
  flagged_at INTEGER NOT NULL,         -- nanoseconds since 1970-01-01 UTC
  reason TEXT NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

DROP VIEW v_observations;

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
  strftime('%Y-%m-%dT%H:%M:%fZ', b.observed_at / 1e9, 'unixepoch') AS observed_at,
  s.reason AS suspect
FROM observations b
JOIN conditions c ON c.id = b.conditions
JOIN hardware h ON h.id = c.hardware
LEFT JOIN suspect_observations s ON s.observation = b.id
JOIN json_each(b."values") v;

UPDATE writer SET schema_version = 21;
