-- Version 1 of the schema. Formats grow by adding: a released migration is never edited; a change is
-- a new file. docs/DATABASE.md tells the same story with examples.
--
-- Conventions: times of day are nanoseconds since 1970-01-01T00:00:00Z; durations end in _ns; 64-bit
-- unsigned values keep their bits. `checksum` is XXH3-64 of the columns before it (storage/sqlite/sqlite.cc)
-- and is compared before a row is used.

-- One row: who may write.
CREATE TABLE writer (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  epoch INTEGER NOT NULL  -- counts the starts of the coordinator; the highest one may write
) STRICT;
INSERT INTO writer VALUES (1, 0);

-- What each failure code means. Filled from the program's own table at each start.
CREATE TABLE failure_codes (
  code INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  retryable INTEGER NOT NULL CHECK (retryable IN (0, 1)),  -- the same request may succeed later
  advice TEXT NOT NULL
) STRICT;

-- A list of jobs of one client, and how far it is. The counts are kept right by each transaction.
CREATE TABLE batches (
  id INTEGER PRIMARY KEY,              -- 1, 2, 3 ...
  client BLOB NOT NULL CHECK (length(client) = 16),
  accepted_at INTEGER NOT NULL,
  closed INTEGER NOT NULL CHECK (closed IN (0, 1)),        -- takes no more jobs
  cancelled INTEGER NOT NULL CHECK (cancelled IN (0, 1)),
  job_count INTEGER NOT NULL,
  finished INTEGER NOT NULL CHECK (finished BETWEEN 0 AND job_count),  -- jobs with an outcome
  failed INTEGER NOT NULL CHECK (failed BETWEEN 0 AND finished),
  from_store INTEGER NOT NULL CHECK (from_store BETWEEN 0 AND finished),  -- answered by earlier results
  checksum INTEGER NOT NULL
) STRICT;
-- What a starting coordinator has to go on with; rows leave it as batches finish.
CREATE INDEX batches_unfinished ON batches (id) WHERE closed = 0 OR finished < job_count;

-- One accepted message: so that the same message, sent again, gets the same answer.
CREATE TABLE requests (
  client BLOB NOT NULL CHECK (length(client) = 16),
  request_id BLOB NOT NULL CHECK (length(request_id) = 16),
  digest BLOB NOT NULL,                -- of the content: the same id with another digest is a conflict
  batch INTEGER NOT NULL,
  first_index INTEGER NOT NULL,        -- of its jobs in the batch
  job_count INTEGER NOT NULL,
  accepted_at INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (client, request_id)
) STRICT, WITHOUT ROWID;

-- The journal: what was asked. A row is never changed.
CREATE TABLE jobs (
  batch INTEGER NOT NULL,
  idx INTEGER NOT NULL CHECK (idx >= 0),  -- 0-based place in the batch
  benchmark TEXT,                      -- a URI; NULL: `ir` is given instead
  ir TEXT,                             -- a whole program as text
  actions TEXT NOT NULL,               -- 'down,swap_up,split_4'
  options TEXT,                        -- JSON: the options that differ from their defaults; NULL: none
  tag TEXT NOT NULL,                   -- the user's own JSON text; '' is none
  checksum INTEGER NOT NULL,
  PRIMARY KEY (batch, idx),
  CHECK ((benchmark IS NULL) <> (ir IS NULL))
) STRICT, WITHOUT ROWID;

-- A host, as it described itself.
CREATE TABLE hardware (
  id INTEGER PRIMARY KEY,
  device TEXT NOT NULL CHECK (device IN ('cpu', 'cuda')),
  class TEXT NOT NULL,                 -- results are shared by hosts of one class
  model TEXT NOT NULL,
  isa TEXT NOT NULL,
  microcode TEXT NOT NULL,             -- '': not known
  clock_mhz REAL NOT NULL,             -- as the host states it; 0: not known
  physical_cores INTEGER NOT NULL,
  logical_cores INTEGER NOT NULL,
  l1d_bytes INTEGER NOT NULL,          -- of one core; 0: not known
  l2_bytes INTEGER NOT NULL,
  l3_bytes INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  host TEXT NOT NULL,
  kernel TEXT NOT NULL,                -- operating system and release
  checksum INTEGER NOT NULL,
  UNIQUE (host, class, model, isa, microcode, clock_mhz, physical_cores, logical_cores, l1d_bytes,
          l2_bytes, l3_bytes, memory_bytes, kernel, device)
) STRICT;

-- What made the kernels.
CREATE TABLE compilers (
  id INTEGER PRIMARY KEY,
  llvm TEXT NOT NULL,                  -- '19.1.7'
  tier TEXT NOT NULL,                  -- 'general'
  revision TEXT NOT NULL,              -- of the lowering
  checksum INTEGER NOT NULL,
  UNIQUE (llvm, tier, revision)
) STRICT;

-- Under what circumstances something was measured, or failed. One row for each distinct combination.
CREATE TABLE conditions (
  id INTEGER PRIMARY KEY,
  hardware INTEGER NOT NULL,           -- hardware.id
  compiler INTEGER NOT NULL,           -- compilers.id
  threads INTEGER NOT NULL,
  cache TEXT NOT NULL CHECK (cache IN ('warm', 'cold')),
  policy TEXT NOT NULL,                -- of measuring (docs/MEASUREMENT.md)
  isolation TEXT NOT NULL,             -- how the kernel was kept apart
  checksum INTEGER NOT NULL,
  UNIQUE (hardware, compiler, threads, cache, policy, isolation)
) STRICT;

-- Verified, timed kernels. Nothing that failed has a row here. A row is never changed; measuring anew
-- adds one.
CREATE TABLE results (
  id INTEGER PRIMARY KEY,
  tree_key BLOB NOT NULL CHECK (length(tree_key) = 16),
  content INTEGER NOT NULL,            -- XXH3-64 of the evaluation: tells an answer from the store apart
  conditions INTEGER NOT NULL,         -- conditions.id
  elapsed_ns REAL NOT NULL CHECK (elapsed_ns > 0 AND elapsed_ns < 9e999),  -- of one run: median
  elapsed_low_ns REAL NOT NULL,        -- order-statistic interval round the median, about 95 %
  elapsed_high_ns REAL NOT NULL,
  elapsed_min_ns REAL NOT NULL,
  elapsed_mean_ns REAL NOT NULL,
  spread REAL NOT NULL,                -- (high - low) / (2 * median)
  grade TEXT NOT NULL CHECK (grade IN ('A', 'B', 'C')),
  iterations INTEGER NOT NULL,         -- runs in each timed batch
  samples_ns BLOB NOT NULL,            -- little-endian float64 each: a timed batch / its iterations
  sample_flags BLOB NOT NULL,          -- a byte for each sample: 0 accepted, bit 0 contended
  flop_count INTEGER NOT NULL,         -- of one run
  scratch_bytes INTEGER NOT NULL,      -- of intermediates
  code_hash TEXT NOT NULL,             -- hex digest of the object code
  no_effect TEXT,                      -- JSON array: annotations that changed nothing; NULL: none
  worker TEXT NOT NULL,                -- that measured it
  measured_at INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  CHECK (length(samples_ns) = 8 * length(sample_flags))
) STRICT;
-- The one index that ingest pays for: answering from the store.
CREATE INDEX results_tree_key ON results (tree_key);

-- What became of the jobs: exactly one row for each finished one, never changed.
CREATE TABLE outcomes (
  batch INTEGER NOT NULL,
  sequence INTEGER NOT NULL CHECK (sequence > 0),  -- 1, 2, 3 ... as the batch's jobs finished
  idx INTEGER NOT NULL CHECK (idx >= 0),  -- jobs.idx
  source TEXT NOT NULL CHECK (source IN ('measured', 'stored', 'coalesced')),
  result INTEGER,                      -- results.id; NULL: the job failed
  attempts INTEGER NOT NULL,           -- times the job was leased
  worker TEXT NOT NULL,                -- that measured it, or that it failed on; '': none
  finished_at INTEGER NOT NULL,
  queue_ns INTEGER NOT NULL,           -- how long each stage took
  replay_ns INTEGER NOT NULL,
  compile_ns INTEGER NOT NULL,
  verify_ns INTEGER NOT NULL,
  measure_ns INTEGER NOT NULL,
  store_ns INTEGER NOT NULL,
  -- Of a failed job only. It has no time and no rate anywhere.
  failure_code INTEGER,                -- failure_codes.code
  failure_message TEXT,
  action_index INTEGER,                -- 0-based, where an action is to blame
  signal INTEGER,                      -- that ended the kernel; 0: none
  failed_tree_key BLOB,                -- as far as the job came:
  failed_conditions INTEGER,           -- conditions.id
  failed_flop_count INTEGER,
  failed_scratch_bytes INTEGER,
  failed_code_hash TEXT,
  failed_no_effect TEXT,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (batch, sequence),
  UNIQUE (batch, idx),
  CHECK ((result IS NULL) = (failure_code IS NOT NULL)),
  CHECK ((failure_code IS NULL) = (failure_message IS NULL)),
  CHECK (failure_code IS NOT NULL
         OR coalesce(action_index, signal, failed_tree_key, failed_conditions, failed_flop_count,
                     failed_scratch_bytes, failed_code_hash, failed_no_effect) IS NULL)
) STRICT, WITHOUT ROWID;

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
  o.result AS result
FROM outcomes o
JOIN jobs j ON j.batch = o.batch AND j.idx = o.idx
LEFT JOIN results r ON r.id = o.result
LEFT JOIN failure_codes f ON f.code = o.failure_code
LEFT JOIN conditions c ON c.id = coalesce(r.conditions, o.failed_conditions)
LEFT JOIN hardware h ON h.id = c.hardware
LEFT JOIN compilers k ON k.id = c.compiler;

-- For people: the fastest measurement of each benchmark on each class of hardware.
CREATE VIEW v_best AS
SELECT benchmark, hardware_class, max(gflop_per_second) AS gflop_per_second, elapsed_ns, spread,
       grade, actions, tree_key, worker, finished_at, count(*) AS outcomes
FROM v_results
WHERE status = 'ok'
GROUP BY benchmark, hardware_class;
