-- Version 5: what the sensors of a GPU said while it timed a kernel.

-- A table of its own: results of processors, which have no such row, cost what they did.
CREATE TABLE device_states (
  result INTEGER PRIMARY KEY,          -- results.id
  temperature_c REAL NOT NULL,         -- the highest reading; 0: not told, like all here
  power_w REAL NOT NULL,               -- the highest reading
  memory_clock_mhz REAL NOT NULL,      -- right after the timing
  throttle_reasons INTEGER NOT NULL,   -- all that were seen: bits of nvmlClocksThrottleReasons
  checksum INTEGER NOT NULL
) STRICT;

DROP VIEW v_best;
DROP VIEW v_results;

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
  s.reason AS suspect,                 -- why the figure is not trusted any more; NULL: it is
  nullif(d.temperature_c, 0) AS temperature_c,
  nullif(d.power_w, 0) AS power_w,
  d.throttle_reasons AS throttle_reasons
FROM outcomes o
JOIN jobs j ON j.batch = o.batch AND j.idx = o.idx
LEFT JOIN results r ON r.id = o.result
LEFT JOIN suspect_results s ON s.result = o.result
LEFT JOIN device_states d ON d.result = o.result
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
