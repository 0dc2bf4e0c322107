#!/usr/bin/env python3
"""TVM's MetaSchedule on the programs of loopfleet's data sets, on one thread. build/peers has TVM
(bench/make_environment.sh).

    tvm_programs.py tune PROGRAM FOLDER SECONDS
    tvm_programs.py time PROGRAM FOLDER SECONDS

`tune` searches in a process of its own, which is stopped when the seconds are over; they count from the moment at which
TVM is loaded and its builder and runner are ready. The best schedule so far is left as FOLDER/kernel.so. Prints
{"seconds", "measured", "failed", "what"}.

`time` runs FOLDER/kernel.so on FOLDER/in0.f32, in1.f32, ... (float32, row-major), writes FOLDER/out.f32, and prints
{"elapsed_ns"}: the median of one call.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from numpy_programs import kind_and_sizes

TRIALS_AT_ONCE = 16  # of a round: with TVM's 64, ten seconds on one core end before the first figure
EVALUATION = {"number": 1, "repeat": 1, "min_repeat_ms": 20}  # TVM's own 100 ms would leave fewer candidates


def tensors_of(benchmark):
    """Inputs and output of the program in TVM's tensor expressions."""
    from tvm import te
    kind, sizes = kind_and_sizes(benchmark)

    def inputs(*shapes):
        return [te.placeholder(shape, name=f"in{number}", dtype="float32") for number, shape in enumerate(shapes)]

    def reduced(extent, name="k"):
        return te.reduce_axis((0, extent), name)

    if kind in ("mm", "mmbias", "positive_product", "positive_product_c"):
        m, n, k = sizes
        x, y, *others = inputs((m, k), (k, n), *([(n,), (m, n)] if kind == "mmbias" else []))
        r = reduced(k)

        def product(i, j):
            return x[i, r] * y[r, j] if kind.startswith("mm") else te.max(x[i, r] * y[r, j], zero())

        out = te.compute((m, n), lambda i, j: te.sum(product(i, j), axis=r), name="sum")
        if kind == "mmbias":
            total, (bias, floor) = out, others
            out = te.compute((m, n), lambda i, j: te.max(total[i, j] + bias[j], floor[i, j]), name="out")
        return [x, y, *others, out]
    if kind == "twomm":
        m, n, k, p = sizes
        x, y, z = inputs((m, k), (k, n), (n, p))
        r, q = reduced(k), reduced(n, "q")
        first = te.compute((m, n), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), name="first")
        return [x, y, z, te.compute((m, p), lambda i, j: te.sum(first[i, q] * z[q, j], axis=q), name="second")]
    if kind == "conv":
        batch, channels, height, width, out, _, rows, columns = sizes
        x, w = inputs((batch, channels, height, width), (out, channels, rows, columns))
        c, u, v = reduced(channels, "c"), reduced(rows, "u"), reduced(columns, "v")
        return [x, w, te.compute((batch, out, height - rows + 1, width - columns + 1), lambda b, o, i, j: te.sum(
            x[b, c, i + u, j + v] * w[o, c, u, v], axis=[c, u, v]), name="conv")]
    if kind == "conv1d":
        x, w = inputs(sizes[:1], sizes[1:])
        r = reduced(sizes[1])
        return [x, w, te.compute((sizes[0] - sizes[1] + 1,), lambda i: te.sum(x[i + r] * w[r], axis=r), name="conv")]
    if kind == "chain":
        x, y = inputs(sizes, sizes)
        return [x, y, te.compute(sizes, lambda i, j: te.exp(x[i, j] * y[i, j]) + x[i, j], name="out")]
    if kind in ("reduce_add", "reduce_max", "shift"):
        (x,) = inputs(sizes)
        r = reduced(sizes[1])
        reduce = te.sum if kind == "reduce_add" else te.max
        out = te.compute(sizes[:1], lambda i: reduce(x[i, r], axis=r), name="reduced")
        if kind == "shift":
            greatest = out
            out = te.compute(sizes, lambda i, j: x[i, j] - greatest[i], name="out")
        return [x, out]
    raise ValueError(f"{benchmark} is of no kind that tvm_programs.py knows")


def zero():
    import tvm
    return tvm.tirx.const(0, "float32")


def function_of(benchmark):
    from tvm import te
    return te.create_prim_func(tensors_of(benchmark)).with_attr("global_symbol", "main")


def target_of():
    """This machine's processor, one core of it."""
    import tvm
    host = tvm.target.Target.from_device("cpu")
    return tvm.target.Target({"kind": "llvm", "mtriple": str(host.attrs["mtriple"]), "mcpu": str(host.attrs["mcpu"]),
                              "num-cores": 1})


def build_candidate(module, target, _):
    """TVM's default, except that this does not load the tensor intrinsics of GPUs, which takes ten seconds, and TVM
    starts a process for each round of candidates."""
    import tvm
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock
    return tvm.tirx.build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target)


def search(benchmark, folder):
    """Until it is stopped."""
    import tvm.s_tir.tensor_intrin  # noqa: F401  so that the search has no imports left
    import xgboost  # noqa: F401
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.runner import EvaluatorConfig, LocalRunner
    function, target = function_of(benchmark), target_of()
    builder = ms.builder.LocalBuilder(max_workers=1, f_build=build_candidate)
    runner = LocalRunner(evaluator_config=EvaluatorConfig(**EVALUATION))
    print("ready", flush=True)
    ms.tune_tir(function, target, work_dir=str(folder / "work"), max_trials_global=1_000_000,
                num_trials_per_iter=TRIALS_AT_ONCE, builder=builder, runner=runner, num_tuning_cores=1, seed=1)


def tune(benchmark, folder, seconds):
    with open(folder / "search.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen([sys.executable, __file__, "search", benchmark, str(folder)], stdout=subprocess.PIPE,
                                   stderr=log, text=True, start_new_session=True)
        try:
            if process.stdout.readline() != "ready\n":
                process.wait()
                raise RuntimeError((folder / "search.log").read_text().strip().splitlines()[-1])
            since = time.monotonic()
            try:
                process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                pass
            took = time.monotonic() - since
            # The search has no end of its own, except where a program has very few schedules.
            if process.returncode not in (None, 0):
                raise RuntimeError((folder / "search.log").read_text().strip().splitlines()[-1])
        finally:
            end(process)
    figures = figures_of(folder / "work")
    measured = sum(figure < 1e9 for figure in figures)  # TVM writes 1e10 for a failure
    if measured:
        build(benchmark, folder)
    print(json.dumps({"seconds": round(took, 3), "measured": measured, "failed": len(figures) - measured,
                      "what": f"TVM {version()}, MetaSchedule"}), flush=True)


def end(process):
    """And every process that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def figures_of(work):
    """Seconds of each measured candidate. Takes a last line away that is not whole."""
    path = work / "database_tuning_record.json"
    text = path.read_text() if path.exists() else ""
    whole = text[:text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    return [float(json.loads(line)[1][1][0]) for line in whole.splitlines()]


def build(benchmark, folder):
    import tvm
    from tvm.s_tir import meta_schedule as ms
    target = target_of()
    database = ms.database.JSONDatabase(work_dir=str(folder / "work"))
    schedule = ms.tir_integration.compile_tir(database, function_of(benchmark), target)
    tvm.compile(schedule.mod, target).export_library(str(folder / "kernel.so"))


def version():
    from importlib.metadata import version
    return version("apache-tvm")


def measure(benchmark, folder, seconds):
    import numpy as np
    import tvm
    shapes = [tuple(int(size) for size in tensor.shape) for tensor in tensors_of(benchmark)]
    arrays = [np.fromfile(folder / f"in{number}.f32", np.float32).reshape(shape)
              for number, shape in enumerate(shapes[:-1])]
    arguments = [tvm.runtime.tensor(array) for array in arrays] + [tvm.runtime.tensor(np.empty(shapes[-1], np.float32))]
    library = tvm.runtime.load_module(str(folder / "kernel.so"))
    library["main"](*arguments)
    arguments[-1].numpy().tofile(folder / "out.f32")

    def timed(number, repeat):  # in TVM's own loop: nanoseconds of one call in each repetition
        evaluator = library.time_evaluator("main", tvm.cpu(), number=number, repeat=repeat)
        return [1e9 * one for one in evaluator(*arguments).results]

    calls = 1
    while calls * timed(calls, 1)[0] < 1e6:
        calls *= 2
    repeats = max(5, int(1e9 * seconds / (calls * timed(calls, 1)[0])))
    samples = sorted(timed(calls, repeats))
    print(json.dumps({"elapsed_ns": samples[len(samples) // 2]}), flush=True)


def main():
    os.environ["TVM_NUM_THREADS"] = "1"
    work, benchmark, folder, *seconds = sys.argv[1:]
    folder = Path(folder)
    if work == "search":
        search(benchmark, folder)
    else:
        {"tune": tune, "time": measure}[work](benchmark, folder, float(seconds[0]))


if __name__ == "__main__":
    main()
