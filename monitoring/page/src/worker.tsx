// The workers, and one of them: its hardware, its canaries, its noise.

import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { Chart } from "./chart";
import type { Worker, WorkerDetail } from "./facts";
import { Figure, percent, short, span, State } from "./figure";
import { useAnswer } from "./live";
import { ObservedFacts } from "./observed";
import { Facts, Table } from "./table";

const isDrift = (ratio: number | null): boolean => ratio !== null && Math.abs(ratio - 1) > 0.1;

export function WorkersPage({ turn }: { turn: unknown }) {
  const { answer: workers, error } = useAnswer<Worker[]>("/api/workers", turn);
  if (!workers) return <p class="empty">{error ?? "…"}</p>;
  return (
    <>
      <h1>Workers</h1>
      <Table<Worker>
        caption="Workers"
        rows={workers}
        keyOf={(worker) => worker.worker}
        empty="No worker has been here since the coordinator started."
        columns={[
          { label: "Worker", cell: (worker) => <a href={`#/worker/${worker.worker}`}>{worker.name}</a>, order: (worker) => worker.name },
          { label: "State", cell: (worker) => <State state={worker.state} />, order: (worker) => worker.state },
          { label: "Device", cell: (worker) => worker.device },
          { label: "Leased", number: true, cell: (worker) => <Figure value={worker.leased_jobs} /> },
          {
            label: "Finished",
            number: true,
            cell: (worker) => <Figure value={worker.finished_jobs} />,
            order: (worker) => worker.finished_jobs,
          },
          {
            label: "Heard",
            number: true,
            cell: (worker) => <Figure value={worker.since_heartbeat_ms} as={(ms) => `${span(ms / 1000)} ago`} />,
          },
          {
            label: "Canaries",
            title: "Kernels that never change: their time now to their time at start; more than 10 % off is drift",
            number: true,
            cell: (worker) => (
              <span class={isDrift(worker.canary_ratio) ? "beyond" : ""}>
                <Figure value={worker.canary_ratio} />
              </span>
            ),
            order: (worker) => worker.canary_ratio,
          },
          { label: "Model", cell: (worker) => `${worker.hardware.model} (${worker.hardware.isa})` },
          { label: "Why", cell: (worker) => worker.why ?? "–" },
        ]}
      />
    </>
  );
}

function Canaries({ worker }: { worker: WorkerDetail }) {
  const data = useMemo<uPlot.AlignedData>(
    () => [worker.canaries.map((one) => one.at_ms / 1000), worker.canaries.map((one) => one.ratio)],
    [worker.canaries.length, worker.canaries[worker.canaries.length - 1]?.at_ms],
  );
  if (worker.canaries.length === 0) {
    return <p class="empty">Its canaries have not been compared since this coordinator started.</p>;
  }
  const ratios = worker.canaries.map((one) => one.ratio);
  return (
    <Chart
      label={`Canaries: from ${short(Math.min(...ratios))} to ${short(Math.max(...ratios))} of their time at start`}
      lines={[{ label: "time / time at start", color: "accent" }]}
      data={data}
      height={180}
      time
      value={(ratio) => ratio.toFixed(4)}
    />
  );
}

export function WorkerPage({ id, turn }: { id: string; turn: unknown }) {
  const { answer: worker, error } = useAnswer<WorkerDetail>(`/api/worker/${id}`, turn);
  if (!worker) return <p class="empty">{error ?? "…"}</p>;
  const noise = worker.noise;
  const hardware = worker.hardware;
  return (
    <>
      <h1>
        {worker.name} <State state={worker.state} />
      </h1>
      {worker.why ? (
        <p class="health health-warning">
          <span class="health-dot" aria-hidden="true" />
          {worker.why}
        </p>
      ) : null}
      <Facts
        facts={[
          ["Leased", <Figure value={worker.leased_jobs} />],
          ["Finished", <Figure value={worker.finished_jobs} />],
          ["Heard", `${span(worker.since_heartbeat_ms / 1000)} ago`],
          ["Process", `${worker.pid} on ${worker.host}`],
          ["Labels", <code class="wrap">{worker.labels.join(", ")}</code>],
        ]}
      />
      <section aria-labelledby="hardware-title">
        <h2 id="hardware-title">Hardware</h2>
        <Facts
          facts={[
            ["Model", hardware.model],
            ["Instruction set", hardware.isa],
            ["Reference clock", <Figure value={hardware.clock_mhz} unit="MHz" />],
            ["Peak", <Figure value={hardware.peak_gflop_per_second} unit="GFLOP/s" />],
            ["Memory, reading", <Figure value={hardware.read_gb_per_second} unit="GB/s" />],
            ["Memory, triad", <Figure value={hardware.triad_gb_per_second} unit="GB/s" />],
            ["Threads for a kernel", <Figure value={worker.max_threads} />],
            ["Microcode", hardware.microcode || "–"],
            ["Kernel", hardware.kernel],
            ["Compiler", `LLVM ${worker.compiler.llvm}, tier ${worker.compiler.tier}`],
            ["Class", <code class="wrap">{hardware.class}</code>],
          ]}
        />
      </section>
      <section aria-labelledby="canary-title">
        <h2 id="canary-title">Canaries, last 15 minutes</h2>
        <p class="note">Kernels that never change: their time now to their time when the worker started.</p>
        <Canaries worker={worker} />
      </section>
      {Object.entries(worker.observed).map(([benchmark, values]) => (
        <section aria-label={benchmark}>
          <h2>
            <code>{benchmark}</code>
          </h2>
          <ObservedFacts values={values} />
        </section>
      ))}
      <section aria-labelledby="noise-title">
        <h2 id="noise-title">Noise</h2>
        {noise ? (
          <Facts
            facts={[
              ["Measurements looked at", <Figure value={noise.measured} />],
              ["Spread, median", <Figure value={noise.spread} as={percent} />],
              ["Time to measure, median", <Figure value={noise.measure_ms} unit="ms" />],
              ...["A", "B", "C", "D"].map((grade): [string, preact.ComponentChildren] => [
                `Grade ${grade}`,
                <Figure value={noise.grades[grade] ?? 0} />,
              ]),
            ]}
          />
        ) : (
          <p class="empty">It measured none of the outcomes looked at.</p>
        )}
      </section>
    </>
  );
}
