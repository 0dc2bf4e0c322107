-- Version 19: what several coordinators with one PostgreSQL database tell each other.

-- Figures that came into doubt, in the order in which they did.
CREATE TABLE doubts (
  id INTEGER PRIMARY KEY,              -- 1, 2, 3 ...
  result INTEGER NOT NULL              -- suspect_results.result
) STRICT;
INSERT INTO doubts (result) SELECT result FROM suspect_results ORDER BY flagged_at, result;
-- A trigger, because programs of version 18 may write this database.
CREATE TRIGGER suspect_results_doubts AFTER INSERT ON suspect_results BEGIN
  INSERT INTO doubts (result) VALUES (new.result);
END;

-- Results that another coordinator measured. They answered a job here, and answer no other one: the
-- next one asks PostgreSQL again, where doubts about them are.
CREATE TABLE foreign_results (
  result INTEGER PRIMARY KEY,          -- results.id; its measured_at is when the job here was answered
  coordinator BLOB NOT NULL CHECK (length(coordinator) = 16),  -- the incarnation of its database
  batch INTEGER NOT NULL,              -- the job there
  idx INTEGER NOT NULL,
  measured_at INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

UPDATE writer SET schema_version = 19;
