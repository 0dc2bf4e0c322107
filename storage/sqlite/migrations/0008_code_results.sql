-- Version 8: the newest measurement of each machine code, and v_best by repeated measurements.
-- Results of earlier versions are not entered: their code is measured once more.

CREATE TABLE code_results (
  code INTEGER PRIMARY KEY,            -- XXH3-64 of the code's hash and the conditions
  result INTEGER NOT NULL              -- results.id; its row decides whether the code is the same
) STRICT;

DROP VIEW v_best;

-- For people: the fastest kernel of each benchmark on each class of hardware. A kernel that was
-- measured several times counts by the median of its figures, of an even number by the slower of the
-- middle two: the quickest figure of many is in part luck.
CREATE VIEW v_best AS
WITH figures AS (
  SELECT *, row_number() OVER (kernel ORDER BY elapsed_ns) AS place,
         count(*) OVER kernel AS measurements
  FROM v_results
  WHERE status = 'ok' AND source = 'measured' AND suspect IS NULL AND grade <> 'D'
  WINDOW kernel AS (PARTITION BY benchmark, hardware_class, tree_key, threads, cache)
)
SELECT benchmark, hardware_class, max(gflop_per_second) AS gflop_per_second, elapsed_ns, spread,
       grade, actions, tree_key, worker, finished_at, measurements, sum(measurements) AS outcomes
FROM figures
WHERE place = measurements / 2 + 1
GROUP BY benchmark, hardware_class;
