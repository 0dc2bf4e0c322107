// What the screens read of the coordinator's /api (coordinator/page/fleet_view.cc, job_view.cc;
// common/fleet/fleet_json.cc).

export interface Noise {
  measured: number;
  spread: number | null;
  measure_ms: number | null;
  grades: Record<string, number>;
}

export interface Drain {
  target: string;
  reason: string;
  by: string;
  since: string;
}

export interface Pool {
  class: string;
  device: string;
  model: string;
  isa: string;
  ready: number;
  busy: number;
  draining: number;
  quarantined: number;
  lost: number;
  queued: number;
  why_idle: string | null;
  why_out: string[];
  noise: Noise | null;
}

export interface Batch {
  batch: number;
  state: "open" | "running" | "finished" | "cancelled";
  submitted_at: string;
  submitted_at_ms: number;
  jobs: number;
  finished: number;
  failed: number;
  from_store: number;
  client: string; // its id
  by: string; // its name
  jobs_per_second: number | null;
  eta_s: number | null;
}

export interface FailureGroup {
  code: string;
  jobs: number;
  advice: string;
  newest: { job: string; message: string; finished_at_ms: number };
}

export interface Best {
  benchmark: string;
  hardware_class: string;
  gflop_per_second: number;
  untuned_gflop_per_second: number | null; // null: not among the outcomes looked at
  elapsed_ns: number;
  grade: string;
  actions: string;
  job: string;
  outcomes: number;
}

export interface Attention {
  kind: string;
  severity: "notice" | "warning" | "problem";
  sentence: string;
  link: string;
}

export interface Overview {
  at_ms: number;
  version: string;
  coordinator: string;
  epoch: number;
  health: { state: "ok" | "warning" | "bad"; sentence: string; link: string; attention: Attention[] };
  cards: {
    jobs_per_second: number;
    queued: number;
    leased: number;
    eta_s: number | null;
    workers_ready: number;
    workers: number;
    workers_lost: number;
    finished_5m: number;
    failed_5m: number;
    turnaround: { p50_ms: number | null; p99_ms: number | null };
    finished_since_start: number;
    from_store_since_start: number;
  };
  history: { step_s: number; steps: number; end_ms: number; finished: number[]; failed: number[] };
  pools: Pool[];
  drains: Drain[];
  batches: Batch[];
  failures: FailureGroup[];
  best: Best[];
  looked_at: { outcomes: number; all: boolean; benchmarks: number };
}

export interface Hardware {
  class: string;
  model: string;
  isa: string;
  clock_mhz: number;
  microcode: string;
  kernel: string;
  peak_gflop_per_second: number | null;
  read_gb_per_second: number | null;
  triad_gb_per_second: number | null;
}

export interface Worker {
  worker: string;
  name: string;
  state: "ready" | "draining" | "lost" | "quarantined";
  pid: number;
  host: string;
  device: string;
  leased_jobs: number;
  finished_jobs: number;
  since_heartbeat_ms: number;
  max_threads: number;
  why: string | null;
  labels: string[];
  canary_ratio: number | null;
  hardware: Hardware;
  compiler: { llvm: string; tier: string };
}

export interface WorkerDetail extends Worker {
  canaries: { at_ms: number; ratio: number }[];
  noise: Noise | null;
  observed: Record<string, Observed>; // by benchmark: "probe://peaks-v0"
}

// The values of a job that is not timed, by name.
export type Observed = Record<string, number | number[] | string>;

export interface JobFailure {
  code: string;
  message: string;
  retryable: boolean;
}

export interface OutcomeRow {
  job: string;
  sequence: number;
  benchmark: string | null;
  actions: string[];
  worker: string | null;
  gflop_per_second?: number;
  elapsed_ns?: number;
  grade?: string;
  error?: JobFailure;
}

export interface BatchDetail extends Batch {
  outcomes: OutcomeRow[];
}

export interface Outcome {
  tree_key: string | null;
  status: "ok" | "failed";
  error?: JobFailure;
  elapsed_ns: number | null;
  elapsed_low_ns: number | null;
  elapsed_high_ns: number | null;
  samples_ns: number[];
  samples_before_thinning: number | null; // null: all are there
  sample_flags: number[];
  accepted_samples: number | null;
  gflop_per_second: number | null;
  flop_count: number | null;
  spread: number | null;
  grade: string | null;
  observed: Observed | null; // of a job that is not timed
  source: string | null;
  attempts: number;
  worker: string | null;
  hardware: Hardware | null;
  compiler: { llvm: string; tier: string } | null;
  threads: number | null;
  cache: string | null;
  isolation: string | null;
  stages_ns: Record<string, number | null>;
}

export interface ProfileRow {
  text: string; // of the tree, or what the part is
  known: boolean; // false: the profile does not say
  low: number;
  high: number;
  total: number; // of the kernel's time, with all inside
  c_line: number | null; // of the C text, from 0; null: it has no such line
}

export interface Profile {
  level: "roots" | "loops" | "lines";
  overhead: number;
  note: string;
  c: string | null; // the tree as portable C; null: it is too long to be shown
  rows: ProfileRow[];
}

export interface Job {
  job: string;
  state: "finished" | "unfinished";
  kind: string; // "loop_schedule", "profile", "probe"
  benchmark: string | null;
  loop_tree: string | null;
  profile: Profile | null; // of the tree, where one is stored
  trail: { action: string; legal: boolean; loop_tree: string | null }[];
  commands: { what: string; command: string }[];
  outcome: Outcome | null;
}
