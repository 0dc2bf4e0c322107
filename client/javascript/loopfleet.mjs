/**
 * Runs kernels of `loopfleet-worker emit --format wasm` in browsers and in Node.js. No dependencies.
 *
 *   import { load } from "./loopfleet.mjs";
 *   const product = await load(await readFile("mm.wasm"));
 *   const c = product([a, b]);                       // Float32Arrays, row-major
 *
 * See docs/WEBASSEMBLY.md.
 */

/**
 * What a kernel needs to know of itself, as `emit --format facts --isa wasm32` prints it. Modules of
 * `emit` carry it.
 * @typedef {{buffers: {role: "input" | "output" | "scratch", elements: number}[], flop_count?: number,
 *   tree_key?: string}} Facts
 */

/**
 * A kernel with a memory of its own. Called with one array for each input, it gives a new Float32Array,
 * or several, if the program has several outputs.
 * @typedef {((inputs: ArrayLike<number>[]) => Float32Array | Float32Array[]) & {
 *   facts: Facts,
 *   inputs: Float32Array[],
 *   outputs: Float32Array[],
 *   run: () => void,
 *   measure: (milliseconds?: number) => {ns: number, gflops: number | null},
 * }} Kernel `inputs` and `outputs` are its memory: write, `run()`, read, without a copy. `measure` gives the
 *   shortest run of the time given, on what its memory holds.
 */

const LINE_BYTES = 64; // where kernels want buffers to start
const PAGE_BYTES = 65536;
const MOST_PAGES = 65536;
const POINTER_BYTES = 4;

/** erf by a series without cancellation, in float64; from 4 on float32 has 1. */
function erf(x) {
  if (!(Math.abs(x) < 4)) return Number.isNaN(x) ? x : Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); ++n) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/** As C's pow, which knows the answer for 1 and -1 whatever the other operand. */
function pow(x, y) {
  if (x === 1 || (x === -1 && Math.abs(y) === Infinity)) return 1;
  return Math.pow(x, y);
}

/** The functions of the C library that kernels call. */
const FUNCTIONS = Object.fromEntries(
  Object.entries({
    expf: Math.exp, logf: Math.log, tanhf: Math.tanh, erff: erf, sinf: Math.sin, cosf: Math.cos, powf: pow,
  }).map(([name, of]) => [name, (...numbers) => Math.fround(of(...numbers))]),
);

/** @returns {Facts} what `emit` wrote into the module */
function factsIn(module) {
  const [section] = WebAssembly.Module.customSections(module, "loopfleet.facts");
  if (section === undefined) {
    throw new TypeError("the module has no section loopfleet.facts: give load() the facts of `emit --format facts --isa wasm32`");
  }
  return JSON.parse(new TextDecoder().decode(section));
}

/** Where each buffer starts, after the table of their addresses; and how long that is in all. */
function layoutOf(buffers) {
  const aligned = (bytes) => Math.ceil(bytes / LINE_BYTES) * LINE_BYTES;
  let end = aligned(buffers.length * POINTER_BYTES);
  const starts = buffers.map(({ elements }) => {
    const start = end;
    end += aligned(elements * Float32Array.BYTES_PER_ELEMENT);
    return start;
  });
  return { starts, end };
}

function memoryOf(bytes) {
  const pages = Math.ceil(bytes / PAGE_BYTES);
  if (pages > MOST_PAGES) throw new RangeError(`the kernel needs ${bytes} bytes: WebAssembly has at most 4 GiB`);
  return new WebAssembly.Memory({ initial: pages, maximum: pages });
}

function checkImports(module) {
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    const known = from === "env" && (kind === "memory" ? name === "memory" : Object.hasOwn(FUNCTIONS, name));
    if (!known) throw new TypeError(`the module imports ${from}.${name}: it is no kernel of loopfleet-worker emit`);
  }
}

function copyInto(inputs, given) {
  if (given.length !== inputs.length) throw new TypeError(`the kernel has ${inputs.length} inputs, not ${given.length}`);
  inputs.forEach((input, i) => {
    if (given[i].length !== input.length) {
      throw new RangeError(`input ${i} has ${given[i].length} elements, not ${input.length}`);
    }
    input.set(given[i]);
  });
}

function measured(run, facts, milliseconds) {
  let best = Infinity;
  let repeats = 1;
  const end = performance.now() + milliseconds;
  // Clocks of browsers are coarse: a sample lasts at least 2 ms.
  for (let now = performance.now(); now < end || best === Infinity; ) {
    for (let i = 0; i < repeats; ++i) run();
    const after = performance.now();
    const took = after - now;
    if (took < 2) repeats *= 2;
    else best = Math.min(best, (took * 1e6) / repeats);
    now = after;
  }
  return { ns: best, gflops: facts.flop_count === undefined ? null : facts.flop_count / best };
}

/**
 * Makes a kernel of a module.
 * @param {BufferSource | WebAssembly.Module} bytes what `loopfleet-worker emit --format wasm` wrote
 * @param {Facts} [facts] those of the module, if not given
 * @returns {Promise<Kernel>}
 */
export async function load(bytes, facts) {
  const module = bytes instanceof WebAssembly.Module ? bytes : await WebAssembly.compile(bytes);
  checkImports(module);
  facts ??= factsIn(module);
  const { buffers } = facts;
  const { starts, end } = layoutOf(buffers);
  const memory = memoryOf(end);
  const instance = await WebAssembly.instantiate(module, { env: { memory, ...FUNCTIONS } });
  new Uint32Array(memory.buffer).set(starts);
  const views = (role) =>
    buffers.flatMap((buffer, i) => (buffer.role === role ? [new Float32Array(memory.buffer, starts[i], buffer.elements)] : []));
  const inputs = views("input");
  const outputs = views("output");
  const run = () => instance.exports.loopfleet_kernel(0);
  const kernel = (given) => {
    copyInto(inputs, given);
    run();
    const results = outputs.map((output) => output.slice());
    return results.length === 1 ? results[0] : results;
  };
  return Object.assign(kernel, {
    facts, inputs, outputs, run, measure: (milliseconds = 200) => measured(run, facts, milliseconds),
  });
}
