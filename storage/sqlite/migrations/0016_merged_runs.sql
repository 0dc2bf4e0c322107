-- Version 16: sorted runs of the index of results are merged, 16 into one, so that a look-up asks
-- few of them however many results there are (storage/sqlite/result_index/run_merge.h). A merged run
-- has several rows of result_key_runs, its parts; their numbers begin at its level * 2^32.

-- Merged runs that are whole. A part that is in none belongs to a merge that goes on.
CREATE TABLE merged_runs (
  first_part INTEGER PRIMARY KEY,      -- result_key_runs.run from .. to, by hash
  last_part INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

-- Rows of result_key_runs whose entries are in a merged run. They are removed in small steps.
CREATE TABLE retired_runs (
  run INTEGER PRIMARY KEY,
  checksum INTEGER NOT NULL
) STRICT;

-- Programs of earlier versions take a part for a run: with the first merge, they may write the
-- database no more (sqlite/result_index/compaction.cc).
UPDATE writer SET schema_version = 16;
