// Runs the kernel of a job in this browser, as WebAssembly. The coordinator has no compiler: a command
// makes the file, and the page opens it.

import { useState } from "preact/hooks";
import { load } from "../../../client/javascript/loopfleet.mjs";
import { Command } from "./command";
import type { Job } from "./facts";
import { duration, Figure } from "./figure";
import { Facts } from "./table";

interface Run {
  ns: number;
  gflops: number | null;
}

async function runOf(file: File, treeKey: string | null | undefined): Promise<Run> {
  const kernel = await load(await file.arrayBuffer());
  const { tree_key: found } = kernel.facts;
  if (treeKey && found !== treeKey) throw new Error(`${file.name} is of another tree: its key is ${found}`);
  for (const input of kernel.inputs) {
    for (let i = 0; i < input.length; ++i) input[i] = 2 * Math.random() - 1;
  }
  return kernel.measure(300);
}

export function RunHere({ job }: { job: Job }) {
  const [run, setRun] = useState<Run | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const open = async (event: Event) => {
    const input = event.currentTarget as HTMLInputElement;
    const file = input.files?.[0];
    if (!file) return;
    try {
      setRun(await runOf(file, job.outcome?.tree_key));
      setProblem(null);
    } catch (error) {
      setRun(null);
      setProblem((error as Error).message);
    }
    input.value = ""; // the same file may be chosen again
  };
  return (
    <section aria-labelledby="here-title">
      <h2 id="here-title">Run here</h2>
      <ul class="commands">
        <Command what="its WebAssembly, for one thread" command={`loopfleet job code ${job.job} --format wasm > kernel.wasm`} />
      </ul>
      <p>
        <label>
          The file that it wrote: <input class="run-here" type="file" accept=".wasm,application/wasm" onChange={open} />
        </label>
      </p>
      <div class="ran-here" role="status">
        {problem !== null && <p class="empty">{problem}</p>}
        {run !== null && (
          <Facts
            facts={[
              ["Rate in this browser", <Figure value={run.gflops} unit="GFLOP/s" />],
              ["Shortest run", <Figure value={run.ns} as={duration} />],
            ]}
          />
        )}
      </div>
    </section>
  );
}
