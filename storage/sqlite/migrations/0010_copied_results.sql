-- Version 10: which measurement a copied figure repeats, and every measurement of a machine code, not
-- the newest alone: doubt about a measurement reaches its copies, and hides no older one.
-- Copies of earlier versions stay without a link.

ALTER TABLE code_results RENAME TO code_results_8;
CREATE TABLE code_results (
  code INTEGER NOT NULL,               -- XXH3-64 of the code's hash and the conditions
  result INTEGER NOT NULL,             -- results.id; its row decides whether the code is the same
  elapsed_mean_ns REAL NOT NULL,       -- of that result: tells the code's measurements apart
  PRIMARY KEY (code, result)
) STRICT, WITHOUT ROWID;
INSERT INTO code_results
SELECT c.code, c.result, r.elapsed_mean_ns FROM code_results_8 c JOIN results r ON r.id = c.result;
DROP TABLE code_results_8;

CREATE TABLE copied_results (
  result INTEGER PRIMARY KEY,          -- results.id, of a job whose source is 'same_code'
  original INTEGER NOT NULL,           -- results.id of the measurement; its age and doubts count
  checksum INTEGER NOT NULL
) STRICT;

PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(replace(sql, 's.reason AS suspect', 'coalesce(s.reason, so.reason) AS suspect'),
                  'LEFT JOIN suspect_results s ON s.result = o.result',
                  'LEFT JOIN suspect_results s ON s.result = o.result
LEFT JOIN copied_results cr ON cr.result = o.result
LEFT JOIN suspect_results so ON so.result = cr.original')
WHERE type = 'view' AND name = 'v_results';
PRAGMA writable_schema = RESET;
