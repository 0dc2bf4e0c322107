-- Version 3: the best schedules are of programs, however a program was written, as in SQLite's
-- best_schedules.

ALTER TABLE best RENAME TO former_best;  -- loopfleet-mirror enters its rows, then drops it

-- The fastest eight trees of each program and conditions, each with its newest figure; none in doubt.
-- Kept as outcomes come.
CREATE TABLE best (
  program bytea NOT NULL,              -- what is computed (looptree::ProgramKey)
  hardware_class text NOT NULL,
  threads integer NOT NULL,
  cache text NOT NULL,
  tree_key bytea NOT NULL,
  elapsed_ns double precision NOT NULL,
  worker text NOT NULL,
  finished_at timestamptz NOT NULL,
  coordinator integer NOT NULL,
  batch bigint NOT NULL,
  sequence bigint NOT NULL,
  PRIMARY KEY (program, hardware_class, threads, cache, tree_key)
);

CREATE OR REPLACE VIEW v_best AS  -- with the rights, and the views on it, that there are
SELECT o.benchmark, b.hardware_class, b.threads, b.cache, o.flop_count / o.elapsed_ns AS gflop_per_second,
       o.elapsed_ns, o.spread, o.grade, o.actions, encode(o.tree_key, 'hex') AS tree_key, o.worker,
       o.finished_at, k.incarnation AS coordinator, o.batch, o.index,
       encode(b.program, 'hex') AS program
FROM (SELECT DISTINCT ON (program, hardware_class, threads, cache) * FROM best
      ORDER BY program, hardware_class, threads, cache, elapsed_ns) b
JOIN outcomes o USING (coordinator, batch, sequence, finished_at)
JOIN coordinators k ON k.id = o.coordinator;
