-- Version 13: measurements are found by their machine code in the same runs as by their tree
-- (result_key_runs). An index in the order of a hash, as the table was, changes a page for each row.
-- Results of earlier versions that are in a run are not found by their code.

-- Unused from now on; programs of version 12 may write this database, and enter rows here.
DELETE FROM code_results;

UPDATE writer SET schema_version = 13;
