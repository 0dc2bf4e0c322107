// One job: what it builds, step by step, and what came of it.

import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import { Chart } from "./chart";
import { Command } from "./command";
import type { Job, Outcome, Profile, ProfileRow } from "./facts";
import { benchmarkName, duration, Figure, Grade, percent, State } from "./figure";
import { useAnswer } from "./live";
import { ObservedFacts } from "./observed";
import { RunHere } from "./run_here";
import { Facts } from "./table";

function Stages({ outcome }: { outcome: Outcome }) {
  const stages = Object.entries(outcome.stages_ns).filter((stage): stage is [string, number] => stage[1] !== null);
  const total = stages.reduce((sum, [, ns]) => sum + ns, 0);
  if (total === 0) return null;
  return (
    <section aria-labelledby="stages-title">
      <h2 id="stages-title">Where its time went</h2>
      <div class="stages" aria-hidden="true">
        {stages.map(([name, ns]) => (
          <span key={name} class={`stage stage-${name}`} style={{ flexGrow: ns / total }} title={`${name}: ${duration(ns)}`} />
        ))}
      </div>
      <dl class="stage-list">
        {stages.map(([name, ns]) => (
          <div key={name}>
            <dt>
              <span class={`stage-key stage-${name}`} aria-hidden="true" /> {name}
            </dt>
            <dd>
              <Figure value={ns} as={duration} /> <span class="unit">{percent(ns / total)}</span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Samples({ outcome }: { outcome: Outcome }) {
  const data = useMemo<uPlot.AlignedData>(() => {
    const pick = (flagged: boolean) =>
      outcome.samples_ns.map((ns, i) => ((outcome.sample_flags[i] ?? 0) !== 0) === flagged ? ns : null);
    return [outcome.samples_ns.map((_, i) => i + 1), pick(false), pick(true)];
  }, [outcome]);
  const kept = outcome.samples_ns.length;
  const taken = outcome.samples_before_thinning ?? kept;
  if (taken === 0) return null;
  const flagged = taken - (outcome.accepted_samples ?? 0);
  // Fewer accepted ones are no figure: it is over all then, and graded C (docs/MEASUREMENT.md).
  const leftOut = taken - flagged >= 3 ? " and left out" : "; too few are not, so the figure is over all";
  return (
    <section aria-labelledby="samples-title">
      <h2 id="samples-title">Samples</h2>
      <p>
        {taken} timed batches, {flagged === 0 ? "none" : flagged} flagged as disturbed
        {flagged === 0 ? "" : leftOut}.
        {kept < taken && ` Retention has taken samples away since: ${kept === 0 ? "none is" : `${kept} are`} kept.`}
      </p>
      {kept > 0 && <Chart
        label={`Time of one run in each of ${kept} timed batches${kept < taken ? "" : `, of which ${flagged} are flagged`}`}
        lines={[
          { label: "accepted", color: "accent", points: true },
          { label: "flagged", color: "bad", points: true },
        ]}
        data={data}
        height={200}
        time={false}
        value={duration}
      />}
    </section>
  );
}

function Result({ kind, outcome }: { kind: Job["kind"]; outcome: Outcome }) {
  if (outcome.error) {
    return (
      <>
        <p class="health health-bad">
          <span class="health-dot" aria-hidden="true" />
          <span>
            <code>{outcome.error.code}</code>: {outcome.error.message}
          </span>
        </p>
        <Facts
          facts={[
            ["Attempts", <Figure value={outcome.attempts} />],
            ["Worker", outcome.worker ?? "none"],
            ["May be tried again", outcome.error.retryable ? "yes" : "no"],
          ]}
        />
      </>
    );
  }
  if (outcome.observed) {
    // A profile's values stand beside the tree.
    return (
      <>
        {kind === "profile" ? null : <ObservedFacts values={outcome.observed} />}
        <Facts facts={[["Source", outcome.source ?? "–"], ["Worker", outcome.worker ?? "–"]]} />
      </>
    );
  }
  return (
    <Facts
      facts={[
        ["Rate", <Figure value={outcome.gflop_per_second} unit="GFLOP/s" />],
        ["Run time", <Figure value={outcome.elapsed_ns} as={duration} />],
        [
          "95 % interval",
          <>
            <Figure value={outcome.elapsed_low_ns} as={duration} /> to <Figure value={outcome.elapsed_high_ns} as={duration} />
          </>,
        ],
        ["Spread", <Figure value={outcome.spread} as={percent} />],
        ["Grade", <Grade grade={outcome.grade} />],
        ["Source", outcome.source ?? "–"],
        ["Worker", outcome.worker ?? "–"],
        ["Hardware", outcome.hardware ? `${outcome.hardware.model} ${outcome.hardware.isa}` : "–"],
        ["Compiler", outcome.compiler ? `LLVM ${outcome.compiler.llvm}, tier ${outcome.compiler.tier}` : "–"],
        ["Threads, cache", `${outcome.threads}, ${outcome.cache}`],
        ["Kept apart by", outcome.isolation ?? "–"],
        ["Work of one run", <Figure value={outcome.flop_count} unit="flop" />],
        ["Tree key", <code class="wrap">{outcome.tree_key}</code>],
      ]}
    />
  );
}

const EVIDENCE = {
  roots: "by a clock between its roots",
  loops: "by counters at its loops",
  lines: "by samples of the kernel",
};

// Lines with a bar beside each that a row of the profile is about.
function ProfiledLines({ of, lines }: { of: "tree" | "code"; lines: { text: string; row?: ProfileRow }[] }) {
  return (
    <div class={`profile ${of}`} role="table" aria-label={`Shares of the time, by line of the ${of}`} tabIndex={0}>
      {lines.map(({ text, row }, i) => (
        <div key={i} role="row" title={row ? `${percent(row.low)} to ${percent(row.high)}` : ""}>
          <code role="cell">{text}</code>
          <span role="cell" class="profile-share">
            {row ? percent(row.total) : ""}
          </span>
          <span class="profile-bar" aria-hidden="true">
            {row && <span style={{ width: `${100 * Math.min(1, row.total)}%` }} />}
          </span>
        </div>
      ))}
    </div>
  );
}

// A loop's bar is what it takes with all inside.
function ProfiledTree({ profile }: { profile: Profile }) {
  return (
    <>
      <p class="note">
        Where the time of a run goes, {EVIDENCE[profile.level]}, which took {percent(profile.overhead)} more time.
        {profile.note && ` ${profile.note}.`}
      </p>
      <ProfiledLines of="tree" lines={profile.rows.map((row) => ({ text: row.text, row: row.known ? row : undefined }))} />
    </>
  );
}

function ProfiledC({ profile }: { profile: Profile }) {
  if (profile.c === null) return null;
  const rows = new Map(profile.rows.filter((row) => row.known).map((row) => [row.c_line, row]));
  const lines = profile.c.trimEnd().split("\n").map((text, i) => ({ text, row: rows.get(i) }));
  const comment = lines.findIndex((line) => line.text === " */"); // it says again what the tree does
  return (
    <>
      <p class="note">The same at the lines of its portable C.</p>
      <ProfiledLines of="code" lines={lines.slice(comment + 1)} />
    </>
  );
}

function Trail({ job }: { job: Job }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const step = chosen === null ? undefined : job.trail[chosen];
  const tree = step ? step.loop_tree : job.loop_tree;
  const what = step ? `after step ${(chosen ?? 0) + 1}, ${step.action}` : job.outcome?.status === "ok" ? "as measured" : "at the end";
  return (
    <section aria-labelledby="tree-title">
      <h2 id="tree-title">Loop tree</h2>
      <div class="trail" role="group" aria-label="Actions: choose one to see the tree after it">
        {job.trail.map((one, i) => (
          <button
            key={i}
            class={one.legal ? "" : "illegal"}
            aria-pressed={chosen === i}
            title={one.legal ? "" : "not legal there"}
            onClick={() => setChosen(chosen === i ? null : i)}
          >
            {one.action}
          </button>
        ))}
        <button aria-pressed={chosen === null} onClick={() => setChosen(null)}>
          the end
        </button>
      </div>
      <p class="note">The tree {what}.</p>
      {job.profile && chosen === null ? (
        <>
          <ProfiledTree profile={job.profile} />
          <ProfiledC profile={job.profile} />
        </>
      ) : (
        <pre class="tree" tabIndex={0}>
          {tree ?? "No tree: the actions do not lead to one."}
        </pre>
      )}
    </section>
  );
}

export function JobPage({ id, turn }: { id: string; turn: unknown }) {
  const [finished, setFinished] = useState("");
  // What is finished never changes: it is asked for once.
  const { answer: job, error } = useAnswer<Job>(`/api/job/${id}`, finished === id ? "finished" : turn);
  if (!job) return <p class="empty">{error ?? "…"}</p>;
  if (job.state === "finished" && finished !== id) setFinished(id);
  return (
    <>
      <h1>
        Job {job.job} <State state={job.outcome ? job.outcome.status : "unfinished"} />
      </h1>
      <p>
        <code>{benchmarkName(job.benchmark)}</code> of <a href={`#/batch/${id.split(".")[0]}`}>batch {id.split(".")[0]}</a>
      </p>
      {job.outcome ? <Result kind={job.kind} outcome={job.outcome} /> : <p class="empty">It has no outcome yet.</p>}
      {job.kind === "loop_schedule" || job.kind === "profile" ? <Trail job={job} /> : null}
      {job.outcome ? <Stages outcome={job.outcome} /> : null}
      {job.outcome ? <Samples outcome={job.outcome} /> : null}
      <section aria-labelledby="commands-title">
        <h2 id="commands-title">Look further</h2>
        <ul class="commands">
          {job.commands.map((one) => (
            <Command key={one.what} {...one} />
          ))}
        </ul>
      </section>
      {job.kind === "loop_schedule" ? <RunHere job={job} /> : null}
    </>
  );
}
