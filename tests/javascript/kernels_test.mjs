// WebAssembly kernels of random trees against the interpreter, and what loopfleet.mjs refuses.
// LOOPFLEET_JAVASCRIPT_TREES says how many trees, LOOPFLEET_JAVASCRIPT_SEED which.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { load } from "../../client/javascript/loopfleet.mjs";

const TREES = Number(process.env.LOOPFLEET_JAVASCRIPT_TREES ?? 200);
const SEED = process.env.LOOPFLEET_JAVASCRIPT_SEED ?? "0x3a57";
const WORKER = join(process.env.LOOPFLEET_BIN, "loopfleet-worker");

/** What `loopfleet-worker emit` writes for a job line. */
function emit(line, ...flags) {
  return new Promise((resolve, reject) => {
    const child = execFile(WORKER, ["emit", ...flags], { encoding: "buffer", maxBuffer: 1 << 24 }, (error, out, messages) =>
      error ? reject(new Error(`${messages}${line}`)) : resolve(out));
    child.stdin.end(line);
  });
}

const wasmOf = (job) => emit(JSON.stringify({ actions: [], ...job }), "--format", "wasm");

async function floats(path, type) {
  const bytes = await readFile(path);
  return new type(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

/** Cut into arrays of the lengths of `like`. */
function cut(all, like) {
  let at = 0;
  return like.map(({ length }) => all.subarray(at, (at += length)));
}

function difference(outputs, expected) {
  const values = outputs.flatMap((output) => [...output]);
  assert.equal(values.length * 2, expected.length);
  for (let i = 0; i < values.length; ++i) {
    const [value, bound] = [expected[2 * i], expected[2 * i + 1]];
    if (values[i] !== value && !(Math.abs(values[i] - value) <= bound)) {
      return `element ${i}: ${values[i]}, interpreted ${value} +- ${bound}`;
    }
  }
  return "";
}

test("random trees give what the interpreter gives", async () => {
  const folder = await mkdtemp(join(tmpdir(), "loopfleet-javascript-"));
  try {
    execFileSync(join(process.env.LOOPFLEET_TESTS, "random_trees"), [folder, String(TREES), String(Number(SEED))]);
    const imported = new Set();
    const check = async (i) => {
      const line = await readFile(join(folder, `${i}.json`), "utf8");
      const module = await WebAssembly.compile(await emit(line, "--format", "wasm"));
      WebAssembly.Module.imports(module).forEach(({ name }) => imported.add(name));
      const kernel = await load(module);
      for (const output of kernel.outputs) output.fill(NaN);
      const given = cut(await floats(join(folder, `${i}.inputs`), Float32Array), kernel.inputs);
      const outputs = [kernel(given)].flat();
      assert.equal(difference(outputs, await floats(join(folder, `${i}.expected`), Float64Array)), "", line);
      given.forEach((input, at) => assert.deepEqual(kernel.inputs[at], input, "inputs are not written"));
    };
    const left = Array.from({ length: TREES }, (_, i) => i);
    const worker = async () => { for (let i; (i = left.pop()) !== undefined; ) await check(i); };
    await Promise.all(Array.from({ length: availableParallelism() }, worker));
    if (TREES >= 200) assert.ok(imported.has("expf") && imported.has("logf"), [...imported].join());
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a product of matrices", async () => {
  const kernel = await load(await wasmOf({ benchmark: "benchmark://mm-v0/mm5_7_3" }));
  const a = Array.from({ length: 15 }, (_, i) => i - 7);
  const b = Array.from({ length: 21 }, (_, i) => (i % 5) - 2);
  const c = kernel([a, b]);
  assert.ok(c instanceof Float32Array && c.length === 35);
  for (let m = 0; m < 5; ++m) {
    for (let n = 0; n < 7; ++n) {
      assert.equal(c[m * 7 + n], [0, 1, 2].reduce((all, k) => all + a[m * 3 + k] * b[k * 7 + n], 0));
    }
  }
  kernel.inputs[0].fill(0);
  kernel.run();
  assert.ok(kernel.outputs[0].every((value) => value === 0));
  assert.notEqual(kernel.outputs[0], c);
});

test("a job on several threads runs on one", async () => {
  const threaded = "benchmark://loop_tool-cpu-v0/64";
  const [one, four] = await Promise.all([1, 4].map((threads) => wasmOf({ benchmark: threaded, actions: ["toggle_thread"], threads })));
  assert.deepEqual(four, one);
  assert.deepEqual((await load(four))([Array(64).fill(1), Array(64).fill(2)]), new Float32Array(64).fill(3));
});

test("its figures", async () => {
  const kernel = await load(await wasmOf({ benchmark: "benchmark://mm-v0/mm64_64_64" }));
  const { ns, gflops } = kernel.measure(50);
  assert.ok(ns > 100 && ns < 1e9);
  assert.equal(gflops, (2 * 64 ** 3) / ns);
});

test("facts may be given", async () => {
  const job = JSON.stringify({ benchmark: "benchmark://mm-v0/mm8_8_8", actions: [] });
  const facts = JSON.parse(await emit(job, "--format", "facts", "--isa", "wasm32"));
  const kernel = await load(await emit(job, "--format", "wasm"), facts);
  assert.deepEqual(kernel.facts, facts);
  assert.equal(facts.flop_count, 1024);
  assert.deepEqual(facts, (await load(await emit(job, "--format", "wasm"))).facts);
});

test("what it refuses", async () => {
  const wasm = await wasmOf({ benchmark: "benchmark://mm-v0/mm4_4_4" });
  const kernel = await load(wasm);
  assert.throws(() => kernel([[1]]), { name: "TypeError", message: "the kernel has 2 inputs, not 1" });
  assert.throws(() => kernel([new Float32Array(16), [1]]), { name: "RangeError", message: "input 1 has 1 elements, not 16" });
  // A module that imports env.unknown, and one that is a module and nothing else.
  const other = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 15, 1, 3, 101, 110, 118, 7, 117, 110, 107, 110, 111, 119, 110, 0, 0);
  await assert.rejects(load(other), { name: "TypeError", message: /imports env.unknown/ });
  await assert.rejects(load(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)), { name: "TypeError", message: /no section loopfleet.facts/ });
  const facts = { ...kernel.facts, buffers: [{ role: "input", elements: 2 ** 31 }] };
  await assert.rejects(load(wasm, facts), { name: "RangeError", message: /at most 4 GiB/ });
  const flags = ["--format", "wasm", "--benchmark", "benchmark://mm-v0/mm4_4_4"];
  await assert.rejects(emit("", ...flags, "--threads", "2"), /--threads 2: WebAssembly kernels run on 1/);
  await assert.rejects(emit("", ...flags, "--isa", "avx2"), /--format wasm is for --isa wasm32/);
});
