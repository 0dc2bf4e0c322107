-- Version 2: coordinators answer from each other's results, and tell each other which are in doubt.

ALTER TABLE coordinators ADD COLUMN last_doubt bigint NOT NULL DEFAULT 0;  -- SQLite's doubts.id

-- A figure is named by its tree, its worker and its moment, so that a coordinator can also doubt what
-- another one measured.
CREATE TABLE doubts (
  tree_key bytea NOT NULL,
  measured_at timestamptz NOT NULL,    -- outcomes.finished_at
  worker text NOT NULL,
  flagged_at timestamptz NOT NULL,
  reason text NOT NULL,
  PRIMARY KEY (tree_key, measured_at, worker)
);

ALTER TABLE outcomes ADD COLUMN clock_before_mhz double precision;
ALTER TABLE outcomes ADD COLUMN clock_after_mhz double precision;

CREATE OR REPLACE VIEW v_results AS
SELECT
  k.incarnation AS coordinator, o.batch, o.index, o.sequence, o.benchmark, o.actions,
  CASE WHEN o.actions = '' THEN 0
       ELSE 1 + length(o.actions) - length(replace(o.actions, ',', '')) END AS action_count,
  encode(o.tree_key, 'hex') AS tree_key,
  CASE WHEN o.failure IS NULL THEN 'ok' ELSE 'failed' END AS status,
  o.flop_count / o.elapsed_ns AS gflop_per_second,
  o.elapsed_ns, o.elapsed_low_ns, o.elapsed_high_ns, o.spread, o.grade,
  cardinality(o.samples_ns) AS sample_count, nullif(o.flop_count, 0) AS flop_count,
  o.failure, o.message, o.action_index, o.source, o.attempts, o.worker,
  c.hardware_class, c.isa, c.llvm, c.threads, c.cache, o.finished_at, o.tag, o.clock_mhz, o.observed,
  d.reason AS suspect                  -- why a measured figure is not trusted any more; NULL: it is
FROM outcomes o
JOIN coordinators k ON k.id = o.coordinator
LEFT JOIN conditions c ON c.id = o.conditions
LEFT JOIN doubts d
  ON d.tree_key = o.tree_key AND d.measured_at = o.finished_at AND d.worker = o.worker;
