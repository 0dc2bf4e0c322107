-- Version 23: which program a measurement is of. A worker states the machine code of its kernel, so
-- the code answers for trees of the program that the job was about, and of no other. Results of
-- earlier versions answer for no code: it is measured once more.

CREATE TABLE result_programs (
  result INTEGER PRIMARY KEY,          -- results.id, of one that may answer for its code
  program BLOB NOT NULL CHECK (length(program) = 16),  -- what is computed (looptree::ProgramKey)
  checksum INTEGER NOT NULL
) STRICT;

UPDATE writer SET schema_version = 23;
