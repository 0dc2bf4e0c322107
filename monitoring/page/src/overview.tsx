// The first screen.

import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { Chart } from "./chart";
import type { Batch, Best, FailureGroup, Overview, Pool } from "./facts";
import { ago, benchmarkName, duration, Figure, Grade, JobLink, percent, short, span, State } from "./figure";
import { Facts, Table } from "./table";

function Cards({ overview }: { overview: Overview }) {
  const cards = overview.cards;
  const cardOf = (name: string, link: string, value: preact.ComponentChildren, more: preact.ComponentChildren) => (
    <a class="card" href={link} key={name} data-card={name}>
      <span class="card-name">{name}</span>
      <span class="card-value">{value}</span>
      <span class="card-more">{more}</span>
    </a>
  );
  return (
    <div class="cards">
      {cardOf(
        "Jobs per second",
        "#/throughput",
        <Figure value={cards.jobs_per_second} />,
        <>
          <Figure value={cards.finished_since_start} /> since start, <Figure value={cards.from_store_since_start} /> from
          the store
        </>,
      )}
      {cardOf(
        "Queued",
        "#/pools",
        <Figure value={cards.queued} />,
        <>
          <Figure value={cards.leased} /> with workers
          {cards.eta_s === null ? "" : `, done in ${span(cards.eta_s)}`}
        </>,
      )}
      {cardOf(
        "Workers ready",
        "#/workers",
        <>
          <Figure value={cards.workers_ready} />
          <span class="unit"> of {cards.workers}</span>
        </>,
        cards.workers_lost > 0 ? `${cards.workers_lost} lost` : "none lost",
      )}
      {cardOf(
        "Failed, 5 minutes",
        "#/failures",
        cards.finished_5m === 0 ? "–" : percent(cards.failed_5m / cards.finished_5m),
        <>
          <Figure value={cards.failed_5m} /> of <Figure value={cards.finished_5m} /> jobs
        </>,
      )}
      {cardOf(
        "Turnaround, median",
        "#/batches",
        <Figure value={cards.turnaround.p50_ms} as={(ms) => duration(ms * 1e6)} />,
        <>
          99 % within <Figure value={cards.turnaround.p99_ms} as={(ms) => duration(ms * 1e6)} />
        </>,
      )}
    </div>
  );
}

function Throughput({ overview }: { overview: Overview }) {
  const history = overview.history;
  const data = useMemo<uPlot.AlignedData>(() => {
    const end = history.end_ms / 1000;
    const missing = history.steps - history.finished.length;
    const times = Array.from({ length: history.steps }, (_, i) => end - (history.steps - 1 - i) * history.step_s);
    const rates = (counts: number[]) => [
      ...Array<null>(missing).fill(null),
      ...counts.map((count) => count / history.step_s),
    ];
    return [times, rates(history.finished), rates(history.failed)];
  }, [history.end_ms, history.finished.length]);
  const most = Math.max(0, ...history.finished) / history.step_s;
  return (
    <section id="throughput" aria-labelledby="throughput-title">
      <h2 id="throughput-title">Throughput, last 15 minutes</h2>
      <Chart
        label={`Jobs finished per second over 15 minutes, at most ${short(most)}, now ${short(overview.cards.jobs_per_second)}`}
        lines={[
          { label: "finished /s", color: "accent", fill: true },
          { label: "failed /s", color: "bad" },
        ]}
        data={data}
        height={190}
        time
        fromZero
        value={short}
      />
    </section>
  );
}

function PoolTable({ overview }: { overview: Overview }) {
  return (
    <section id="pools" aria-labelledby="pools-title">
      <h2 id="pools-title">Device pools</h2>
      <Table<Pool>
        caption="Device pools"
        rows={overview.pools}
        keyOf={(pool) => pool.class}
        empty="No worker has been here since the coordinator started."
        columns={[
          {
            label: "Pool",
            cell: (pool) => (
              <a href="#/workers" title={pool.class}>
                {pool.device} · {pool.model} {pool.isa}
              </a>
            ),
          },
          { label: "Ready", number: true, cell: (pool) => <Figure value={pool.ready} /> },
          { label: "Busy", number: true, cell: (pool) => <Figure value={pool.busy} /> },
          { label: "Draining", number: true, cell: (pool) => <Figure value={pool.draining} /> },
          { label: "Out", title: "Quarantined or lost", number: true, cell: (pool) => <Figure value={pool.quarantined + pool.lost} /> },
          { label: "Queued", number: true, cell: (pool) => <Figure value={pool.queued} /> },
          { label: "Measuring", title: "Median time to measure one job", number: true, cell: (pool) => <Figure value={pool.noise?.measure_ms} unit="ms" /> },
          { label: "Spread", title: "Half the interval around a figure, relative to it: the median of its jobs", number: true, cell: (pool) => <Figure value={pool.noise?.spread} as={percent} /> },
          {
            label: "Why idle or out",
            cell: (pool) => [pool.why_idle, ...pool.why_out].filter(Boolean).join("; ") || "–",
          },
        ]}
      />
      {overview.drains.length > 0 ? (
        <Facts
          facts={overview.drains.map((drain) => [
            `Drained: ${drain.target}`,
            `by ${drain.by} since ${drain.since}${drain.reason ? `: ${drain.reason}` : ""}`,
          ])}
        />
      ) : null}
    </section>
  );
}

export function Progress({ batch }: { batch: Batch }) {
  const part = batch.jobs > 0 ? batch.finished / batch.jobs : 0;
  return (
    <span class="progress-cell">
      <progress max={Math.max(1, batch.jobs)} value={batch.finished} aria-label={`batch ${batch.batch}`} />
      <span class="unit">{percent(part)}</span>
    </span>
  );
}

export function BatchTable({ batches, now_ms }: { batches: Batch[]; now_ms: number }) {
  return (
    <section id="batches" aria-labelledby="batches-title">
      <h2 id="batches-title">Batches</h2>
      <Table<Batch>
        caption="Batches"
        rows={batches}
        keyOf={(batch) => batch.batch}
        empty="No batch has been submitted to this database yet."
        columns={[
          { label: "Batch", cell: (batch) => <a href={`#/batch/${batch.batch}`}>{batch.batch}</a> },
          { label: "State", cell: (batch) => <State state={batch.state} /> },
          { label: "Progress", cell: (batch) => <Progress batch={batch} /> },
          { label: "Finished", number: true, cell: (batch) => <Figure value={batch.finished} /> },
          { label: "Jobs", number: true, cell: (batch) => <Figure value={batch.jobs} /> },
          { label: "Failed", number: true, cell: (batch) => <Figure value={batch.failed} />, order: (batch) => batch.failed },
          { label: "From store", title: "Answered by a stored result instead of a measurement", number: true, cell: (batch) => <Figure value={batch.from_store} /> },
          { label: "Rate", number: true, cell: (batch) => <Figure value={batch.jobs_per_second} unit="/s" /> },
          { label: "Time left", number: true, cell: (batch) => <Figure value={batch.eta_s} as={span} /> },
          {
            label: "Client",
            title: "The name of its key; without keys, the id that it states",
            cell: (batch) => <span title={batch.client}>{batch.by}</span>,
            order: (batch) => batch.by,
          },
          {
            label: "Submitted",
            cell: (batch) => <time title={batch.submitted_at + " UTC"}>{ago(batch.submitted_at_ms, now_ms)}</time>,
          },
        ]}
      />
    </section>
  );
}

export function FailureTable({ overview }: { overview: Overview }) {
  return (
    <section id="failures" aria-labelledby="failures-title">
      <h2 id="failures-title">Failures by reason</h2>
      <Table<FailureGroup>
        caption="Failures by reason"
        rows={overview.failures}
        keyOf={(group) => group.code}
        empty="None of the outcomes looked at is a failure."
        columns={[
          { label: "Reason", cell: (group) => <code class="whole">{group.code}</code> },
          { label: "Jobs", number: true, cell: (group) => <Figure value={group.jobs} /> },
          {
            label: "Newest",
            cell: (group) => (
              <>
                <JobLink job={group.newest.job} />{" "}
                {ago(group.newest.finished_at_ms, overview.at_ms)}
              </>
            ),
          },
          { label: "What it said", cell: (group) => group.newest.message || "–" },
          { label: "What to do", cell: (group) => group.advice },
        ]}
      />
      <LookedAt overview={overview} />
    </section>
  );
}

function LookedAt({ overview }: { overview: Overview }) {
  const { outcomes, all } = overview.looked_at;
  return <p class="note">{all ? `All ${short(outcomes)} outcomes.` : `Of the newest ${short(outcomes)} outcomes.`}</p>;
}

const speedUp = (best: Best): number | null =>
  best.untuned_gflop_per_second ? best.gflop_per_second / best.untuned_gflop_per_second : null;

function BestTable({ overview }: { overview: Overview }) {
  return (
    <section id="best" aria-labelledby="best-title">
      <h2 id="best-title">
        Best results
        {overview.looked_at.benchmarks > overview.best.length
          ? `, ${overview.best.length} of ${overview.looked_at.benchmarks}`
          : ""}
      </h2>
      <Table<Best>
        caption="Best results"
        rows={overview.best}
        keyOf={(best) => `${best.benchmark} ${best.hardware_class}`}
        empty="Nothing has been measured yet."
        most={25}
        columns={[
          {
            label: "Benchmark",
            cell: (best) => <code title={best.hardware_class}>{benchmarkName(best.benchmark)}</code>,
            order: (best) => best.benchmark,
          },
          {
            label: "GFLOP/s",
            number: true,
            cell: (best) => <Figure value={best.gflop_per_second} />,
            order: (best) => best.gflop_per_second,
          },
          {
            label: "Speed-up",
            title: "Over the fastest untuned outcome looked at",
            number: true,
            cell: (best) => <Figure value={speedUp(best)} unit="×" />,
            order: speedUp,
          },
          { label: "Run time", number: true, cell: (best) => <Figure value={best.elapsed_ns} as={duration} /> },
          { label: "Grade", cell: (best) => <Grade grade={best.grade} /> },
          { label: "Job", cell: (best) => <JobLink job={best.job} /> },
          { label: "Outcomes", number: true, cell: (best) => <Figure value={best.outcomes} />, order: (best) => best.outcomes },
          { label: "Actions", cell: (best) => <code class="wrap">{best.actions.replaceAll(",", ", ") || "none"}</code> },
        ]}
      />
      <LookedAt overview={overview} />
    </section>
  );
}

function FirstSteps() {
  return (
    <section aria-labelledby="first-title">
      <h2 id="first-title">Nothing here yet</h2>
      <p>Start a worker, then give it something to measure:</p>
      <pre>
        {"loopfleet-worker --coordinator tcp://127.0.0.1:5571\n" +
          "loopfleet eval benchmark://mm-v0/mm64_64_64 --actions down,swap_up\n" +
          "loopfleet submit jobs.jsonl --wait"}
      </pre>
    </section>
  );
}

const stateOf = { notice: "ok", warning: "warning", problem: "bad" } as const;

export function HealthLine({ state, sentence, link }: { state: string; sentence: string; link: string }) {
  return (
    <p class={`health health-${state}`} role="status">
      <span class="health-dot" aria-hidden="true" />
      {link ? <a href={link}>{sentence}</a> : sentence}
    </p>
  );
}

export function OverviewPage({ overview }: { overview: Overview }) {
  const empty = overview.pools.length === 0 && overview.batches.length === 0;
  return (
    <>
      <HealthLine {...overview.health} />
      {overview.health.attention
        .filter((item) => item.sentence !== overview.health.sentence)
        .map((item) => (
          <HealthLine key={item.kind} state={stateOf[item.severity]} sentence={item.sentence} link={item.link} />
        ))}
      <Cards overview={overview} />
      {empty ? <FirstSteps /> : null}
      <Throughput overview={overview} />
      <PoolTable overview={overview} />
      <BatchTable batches={overview.batches} now_ms={overview.at_ms} />
      <FailureTable overview={overview} />
      <BestTable overview={overview} />
    </>
  );
}
