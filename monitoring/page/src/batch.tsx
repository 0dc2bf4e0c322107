// One batch, and its outcomes: the newest ones, or a page from the start.

import { useState } from "preact/hooks";
import type { BatchDetail, OutcomeRow } from "./facts";
import { benchmarkName, duration, Figure, Grade, JobLink, span, State } from "./figure";
import { useAnswer } from "./live";
import { Progress } from "./overview";
import { Facts, Table } from "./table";

const PAGE = 100; // as many as the coordinator answers with

export function BatchPage({ id, turn }: { id: string; turn: unknown }) {
  const [after, setAfter] = useState<number | null>(null);
  const { answer: batch, error } = useAnswer<BatchDetail>(
    `/api/batch/${id}?${after === null ? "newest" : `after=${after}`}`,
    turn,
  );
  if (!batch) return <p class="empty">{error ?? "…"}</p>;
  const first = batch.outcomes[0]?.sequence ?? 0;
  const last = batch.outcomes[batch.outcomes.length - 1]?.sequence ?? 0;
  return (
    <>
      <h1>
        Batch {batch.batch} <State state={batch.state} />
      </h1>
      <Facts
        facts={[
          ["Progress", <Progress batch={batch} />],
          ["Jobs", <Figure value={batch.jobs} />],
          ["Finished", <Figure value={batch.finished} />],
          ["Failed", <Figure value={batch.failed} />],
          ["From the store", <Figure value={batch.from_store} />],
          ["Rate", <Figure value={batch.jobs_per_second} unit="jobs/s" />],
          ["Time left", <Figure value={batch.eta_s} as={span} />],
          ["Submitted (UTC)", batch.submitted_at],
          ["Client", <span title={batch.client}>{batch.by}</span>],
        ]}
      />
      <h2>Outcomes, in the order in which they came</h2>
      <Table<OutcomeRow>
        caption="Outcomes"
        rows={batch.outcomes}
        keyOf={(row) => row.job}
        empty="No job of it has finished yet."
        columns={[
          { label: "Job", cell: (row) => <JobLink job={row.job} /> },
          { label: "Benchmark", cell: (row) => <code>{benchmarkName(row.benchmark)}</code> },
          { label: "Actions", cell: (row) => <code class="wrap">{row.actions.join(", ") || "none"}</code> },
          {
            label: "GFLOP/s",
            number: true,
            cell: (row) => <Figure value={row.gflop_per_second} />,
            order: (row) => row.gflop_per_second ?? null,
          },
          {
            label: "Run time",
            number: true,
            cell: (row) => <Figure value={row.elapsed_ns} as={duration} />,
            order: (row) => row.elapsed_ns ?? null,
          },
          {
            label: "Result",
            cell: (row) =>
              row.error ? (
                <span title={row.error.message}>
                  <State state="failed">{row.error.code}</State>
                </span>
              ) : (
                <Grade grade={row.grade} />
              ),
          },
          { label: "Worker", cell: (row) => row.worker ?? "–" },
        ]}
      />
      {batch.finished > PAGE ? (
        <nav class="pages" aria-label="Pages of outcomes">
          <button disabled={first <= 1} onClick={() => setAfter(Math.max(0, first - 1 - PAGE))}>
            Earlier
          </button>
          <button disabled={last >= batch.finished} onClick={() => setAfter(last)}>
            Later
          </button>
          <button disabled={after === null} onClick={() => setAfter(null)}>
            Newest
          </button>
        </nav>
      ) : null}
    </>
  );
}
