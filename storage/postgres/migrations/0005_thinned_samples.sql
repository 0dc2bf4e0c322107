-- Version 5: an outcome says whether retention had removed samples before it was copied.

-- How many samples there were, and how many of them were accepted. NULL: none were removed, or the
-- row is of an earlier version.
ALTER TABLE outcomes ADD COLUMN samples_before integer;
ALTER TABLE outcomes ADD COLUMN accepted_before integer;

CREATE OR REPLACE VIEW v_results AS
SELECT
  k.incarnation AS coordinator, o.batch, o.index, o.sequence, o.benchmark, o.actions,
  CASE WHEN o.actions = '' THEN 0
       ELSE 1 + length(o.actions) - length(replace(o.actions, ',', '')) END AS action_count,
  encode(o.tree_key, 'hex') AS tree_key,
  CASE WHEN o.failure IS NULL THEN 'ok' ELSE 'failed' END AS status,
  o.flop_count / o.elapsed_ns AS gflop_per_second,
  o.elapsed_ns, o.elapsed_low_ns, o.elapsed_high_ns, o.spread, o.grade,
  coalesce(o.samples_before, cardinality(o.samples_ns)) AS sample_count,
  nullif(o.flop_count, 0) AS flop_count,
  o.failure, o.message, o.action_index, o.source, o.attempts, o.worker,
  c.hardware_class, c.isa, c.llvm, c.threads, c.cache, o.finished_at, o.tag, o.clock_mhz, o.observed,
  coalesce(d.reason, f.reason) AS suspect  -- why the figure is not trusted any more; NULL: it is
FROM outcomes o
JOIN coordinators k ON k.id = o.coordinator
LEFT JOIN conditions c ON c.id = o.conditions
LEFT JOIN doubts d
  ON d.tree_key = o.tree_key AND d.measured_at = o.finished_at AND d.worker = o.worker
LEFT JOIN doubts f
  ON f.tree_key = o.figure_tree_key AND f.measured_at = o.figure_measured_at
     AND f.worker = o.figure_worker;
