-- Version 2: the clock beside each measurement, the peaks of each device, and results that are not
-- trusted any more. Columns that were added stand behind the checksum of version 1 and have one of
-- their own, which covers the whole row; a row of version 1 has NULL there.

DROP VIEW v_best;
DROP VIEW v_results;

ALTER TABLE results ADD COLUMN clock_before_mhz REAL;  -- of the core; 0: not measured
ALTER TABLE results ADD COLUMN clock_after_mhz REAL;
ALTER TABLE results ADD COLUMN checksum_2 INTEGER;

-- The same host may measure other peaks at its next start: they are a part of what it said of itself.
CREATE TABLE hardware_2 (
  id INTEGER PRIMARY KEY,
  device TEXT NOT NULL CHECK (device IN ('cpu', 'cuda')),
  class TEXT NOT NULL,                 -- results are shared by hosts of one class
  model TEXT NOT NULL,
  isa TEXT NOT NULL,
  microcode TEXT NOT NULL,             -- '': not known
  clock_mhz REAL NOT NULL,             -- the reference clock that times are stated at; 0: not known
  physical_cores INTEGER NOT NULL,
  logical_cores INTEGER NOT NULL,
  l1d_bytes INTEGER NOT NULL,          -- of one core; 0: not known
  l2_bytes INTEGER NOT NULL,
  l3_bytes INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  host TEXT NOT NULL,
  kernel TEXT NOT NULL,                -- operating system and release
  checksum INTEGER NOT NULL,
  peak_flop_per_second REAL NOT NULL,    -- measured at the worker's start, one thread; 0: not measured
  read_bytes_per_second REAL NOT NULL,
  triad_bytes_per_second REAL NOT NULL,
  checksum_2 INTEGER,                  -- NULL in a row of version 1, whose peaks are 0
  UNIQUE (host, class, model, isa, microcode, clock_mhz, physical_cores, logical_cores, l1d_bytes,
          l2_bytes, l3_bytes, memory_bytes, kernel, device, peak_flop_per_second,
          read_bytes_per_second, triad_bytes_per_second)
) STRICT;
INSERT INTO hardware_2 SELECT *, 0.0, 0.0, 0.0, NULL FROM hardware;
DROP TABLE hardware;
ALTER TABLE hardware_2 RENAME TO hardware;

-- Results that a worker measured while it drifted. They answer nothing any more; outcomes that were
-- made of them stay as they were told. Their trees are measured anew, as new rows of `results`.
CREATE TABLE suspect_results (
  result INTEGER PRIMARY KEY,          -- results.id
  flagged_at INTEGER NOT NULL,
  reason TEXT NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

-- For people: every outcome with what it was about. A failed job's figures are NULL.
CREATE VIEW v_results AS
SELECT
  o.batch AS batch,
  o.idx AS "index",
  coalesce(j.benchmark, j.ir) AS benchmark,
  j.actions AS actions,
  lower(nullif(hex(coalesce(r.tree_key, o.failed_tree_key)), '')) AS tree_key,
  CASE WHEN o.result IS NULL THEN 'failed' ELSE 'ok' END AS status,
  r.flop_count / r.elapsed_ns AS gflop_per_second,
  r.elapsed_ns AS elapsed_ns,
  r.elapsed_low_ns AS elapsed_low_ns,
  r.elapsed_high_ns AS elapsed_high_ns,
  r.spread AS spread,
  r.grade AS grade,
  length(r.sample_flags) AS sample_count,
  coalesce(r.flop_count, nullif(o.failed_flop_count, 0)) AS flop_count,
  f.name AS failure,
  o.failure_message AS message,
  o.action_index AS action_index,
  o.source AS source,
  o.attempts AS attempts,
  o.worker AS worker,
  h.class AS hardware_class,
  h.isa AS isa,
  k.llvm AS llvm,
  c.threads AS threads,
  c.cache AS cache,
  strftime('%Y-%m-%dT%H:%M:%fZ', o.finished_at / 1e9, 'unixepoch') AS finished_at,
  j.tag AS tag,
  o.result AS result,
  nullif((r.clock_before_mhz + r.clock_after_mhz) / 2, 0) AS clock_mhz,
  s.reason AS suspect                  -- why the figure is not trusted any more; NULL: it is
FROM outcomes o
JOIN jobs j ON j.batch = o.batch AND j.idx = o.idx
LEFT JOIN results r ON r.id = o.result
LEFT JOIN suspect_results s ON s.result = o.result
LEFT JOIN failure_codes f ON f.code = o.failure_code
LEFT JOIN conditions c ON c.id = coalesce(r.conditions, o.failed_conditions)
LEFT JOIN hardware h ON h.id = c.hardware
LEFT JOIN compilers k ON k.id = c.compiler;

-- For people: the fastest measurement of each benchmark on each class of hardware.
CREATE VIEW v_best AS
SELECT benchmark, hardware_class, max(gflop_per_second) AS gflop_per_second, elapsed_ns, spread,
       grade, actions, tree_key, worker, finished_at, count(*) AS outcomes
FROM v_results
WHERE status = 'ok' AND suspect IS NULL
GROUP BY benchmark, hardware_class;
