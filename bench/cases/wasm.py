#!/usr/bin/env python3
"""Kernels as WebAssembly in Node.js beside the native ones of the same trees, as a worker measures them, in turns in one
run. Prints the lines of bench/run.sh."""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from loopfleet import Client, LocalCluster

CASES = ["program-v0/positive_product33_48_64", "mm-v0/mm64_64_64", "mm-v0/mm256_256_256", "mm-v0/mm512_512_512"]
RUNNER = """
import { readFile } from "node:fs/promises";
import { load } from "%s";
const kernel = await load(await readFile(process.argv[2]));
kernel.inputs.forEach((input) => input.forEach((_, i) => (input[i] = (i %% 7) - 3)));
console.log(kernel.measure(Number(process.argv[3])).gflops);
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    library = (Path(__file__).resolve().parents[2] / "client/javascript/loopfleet.mjs").as_uri()
    worker = Path(os.environ["LOOPFLEET_BIN"]) / "loopfleet-worker"
    with tempfile.TemporaryDirectory() as folder, LocalCluster(), Client() as client:
        runner, module = Path(folder) / "run.mjs", Path(folder) / "kernel.wasm"
        runner.write_text(RUNNER % library)
        for case in CASES:
            uri = f"benchmark://{case}"
            module.write_bytes(subprocess.run([worker, "emit", "--format", "wasm", "--benchmark", uri], check=True,
                                              stdout=subprocess.PIPE).stdout)
            wasm, native = [], []
            for _ in range(rounds):
                wasm.append(float(subprocess.check_output(["node", runner, module, "200"])))
                outcome = client.evaluate(benchmark=uri, actions=[], fresh=True)
                native.append(outcome.flop_count / outcome.elapsed_ns)
            value, peer = statistics.median(wasm), statistics.median(native)
            print(json.dumps({"bench": "wasm", "case": case.split("/")[1], "value": value, "unit": "GFLOP/s",
                              "peer": "native kernel of the same tree", "peer_value": peer, "ratio": value / peer}), flush=True)


if __name__ == "__main__":
    main()
