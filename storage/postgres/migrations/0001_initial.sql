-- Version 1: the outcomes of any number of coordinators. docs/POSTGRES.md tells the same story.
--
-- Durations end in _ns. Rows are written by loopfleet-mirror alone, and never changed.

-- A coordinator's database, and how far its outcomes are here. One transaction writes outcomes and
-- moves the position, so each outcome is here exactly once.
CREATE TABLE coordinators (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  incarnation uuid NOT NULL UNIQUE,    -- of its database
  name text NOT NULL,                  -- for people: the host and file that were mirrored last
  last_batch bigint NOT NULL DEFAULT 0,  -- the newest batch that was begun
  appends bigint NOT NULL DEFAULT 0,   -- how often the position was moved: a mirror that did not see
                                       -- the last time writes nothing
  mirrored_at timestamptz              -- when the newest outcomes came
);
CREATE TABLE open_batches (            -- batches up to last_batch of which something may follow
  coordinator integer NOT NULL REFERENCES coordinators,
  batch bigint NOT NULL,
  sequence bigint NOT NULL,            -- the last one that is here
  PRIMARY KEY (coordinator, batch)
);

-- Under what circumstances something was measured, or failed.
CREATE TABLE conditions (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key bytea NOT NULL UNIQUE,           -- XXH3-128 of all of it
  device text NOT NULL,
  hardware_class text NOT NULL,
  model text NOT NULL,
  isa text NOT NULL,
  host text NOT NULL,
  llvm text NOT NULL,
  lowering text NOT NULL,
  threads integer NOT NULL,
  cache text NOT NULL,
  policy text NOT NULL,
  isolation text NOT NULL,
  hardware jsonb NOT NULL              -- every fact about it
);

-- What became of the jobs, with what they asked. By month of finished_at (UTC).
CREATE TABLE outcomes (
  coordinator integer NOT NULL,
  batch bigint NOT NULL,
  index integer NOT NULL,
  sequence bigint NOT NULL,
  benchmark text NOT NULL,             -- a URI, or a program as IR text
  actions text NOT NULL,
  tag text NOT NULL,
  source text NOT NULL,                -- measured, same_code, stored, coalesced
  attempts integer NOT NULL,
  worker text NOT NULL,
  finished_at timestamptz NOT NULL,
  queue_ns bigint NOT NULL,
  replay_ns bigint NOT NULL,
  compile_ns bigint NOT NULL,
  verify_ns bigint NOT NULL,
  measure_ns bigint NOT NULL,
  store_ns bigint NOT NULL,
  tree_key bytea,
  conditions integer,                  -- conditions.id
  flop_count bigint NOT NULL,
  scratch_bytes bigint NOT NULL,
  code_hash text NOT NULL,
  notes text[] NOT NULL,
  -- Of a failed job only; it has no figure.
  failure text,
  message text,
  action_index integer,
  signal integer,
  -- Of a timed job.
  elapsed_ns double precision,
  elapsed_low_ns double precision,
  elapsed_high_ns double precision,
  elapsed_min_ns double precision,
  elapsed_mean_ns double precision,
  spread double precision,
  grade text,
  iterations bigint,
  samples_ns double precision[],       -- of a job that was measured itself; else NULL
  sample_flags bytea,
  clock_mhz double precision,
  -- Of a job that is not timed.
  observed jsonb,
  CHECK (num_nonnulls(failure, elapsed_ns, observed) = 1),
  PRIMARY KEY (coordinator, batch, sequence, finished_at)
) PARTITION BY RANGE (finished_at);
CREATE INDEX outcomes_tree_key ON outcomes (tree_key) WHERE elapsed_ns IS NOT NULL;

-- The fastest measured kernel of each benchmark and conditions, by the upper end of its interval, so
-- that a lucky figure does not win. Kept as outcomes come.
CREATE TABLE best (
  benchmark_key uuid NOT NULL,         -- md5 of the benchmark
  hardware_class text NOT NULL,
  threads integer NOT NULL,
  cache text NOT NULL,
  coordinator integer NOT NULL,
  batch bigint NOT NULL,
  sequence bigint NOT NULL,
  finished_at timestamptz NOT NULL,
  elapsed_high_ns double precision NOT NULL,
  PRIMARY KEY (benchmark_key, hardware_class, threads, cache)
);

CREATE VIEW v_results AS
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
  c.hardware_class, c.isa, c.llvm, c.threads, c.cache, o.finished_at, o.tag, o.clock_mhz, o.observed
FROM outcomes o
JOIN coordinators k ON k.id = o.coordinator
LEFT JOIN conditions c ON c.id = o.conditions;

CREATE VIEW v_best AS
SELECT o.benchmark, b.hardware_class, b.threads, b.cache, o.flop_count / o.elapsed_ns AS gflop_per_second,
       o.elapsed_ns, o.spread, o.grade, o.actions, encode(o.tree_key, 'hex') AS tree_key, o.worker,
       o.finished_at, k.incarnation AS coordinator, o.batch, o.index
FROM best b
JOIN outcomes o USING (coordinator, batch, sequence, finished_at)
JOIN coordinators k ON k.id = o.coordinator;
