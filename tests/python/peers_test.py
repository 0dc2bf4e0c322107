"""bench/run.sh peers: search beside those of other compilers, which are used where they are installed."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(os.environ["LOOPFLEET_SOURCE"])
KINDS = ["mm-v0/mm12_20_8", "conv-v0/conv2_3_9_8__4_3_3_2", "program-v0/mmbias12_20_8", "program-v0/twomm8_12_6_10",
         "program-v0/chain12_20", "program-v0/reduce_add12_20", "program-v0/reduce_max12_20", "program-v0/shift12_20",
         "program-v0/conv1d64_5", "program-v0/positive_product12_20_8", "program-v0/positive_product_c12_20_8"]

# A peer whose kernel is numpy, with one thing wrong.
FAKE_PEER = """
import json, sys
import numpy as np
sys.path.insert(0, {peers!r})
from numpy_programs import program_of
work, benchmark, folder, seconds, *options = sys.argv[1:]
wrong = options[0] if options else ""
if work == "tune":
    if wrong == "broken": sys.exit("no compiler")
    open(folder + "/kernel", "w").write(wrong)
    print("chatter")
    print(json.dumps({{"seconds": float(seconds), "measured": 0 if wrong == "slow" else 3, "failed": 1, "what": "fake"}}))
else:
    inputs = [np.fromfile(f"{{folder}}/in{{n}}.f32", np.float32).reshape(like.shape)
              for n, like in enumerate(program_of(np, benchmark)[1])]
    out = program_of(np, benchmark)[2](*inputs)
    if open(folder + "/kernel").read() == "wrong": out.flat[-1] *= 1.001
    out.tofile(folder + "/out.f32")
    print(json.dumps({{"elapsed_ns": 1000}}))
"""


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(SOURCE / "bench/cases"))
    return importlib.import_module("peers")


def run_bench(*arguments):
    return subprocess.run([sys.executable, str(SOURCE / "bench/cases/peers.py"), *map(str, arguments)],
                          capture_output=True, text=True, timeout=500)


def test_a_peer_is_believed_only_if_its_output_is_right(peers, tmp_path):
    script = tmp_path / "fake.py"
    script.write_text(FAKE_PEER.format(peers=str(SOURCE / "bench/peers")))
    for name in KINDS:
        facts = peers.tuned([sys.executable, str(script)])(f"benchmark://{name}", 1)
        assert facts == {"elapsed_ns": 1000, "took_s": 1.0, "measured": 3, "failed": 1, "what": "fake"}, name
    for wrong, said in (("wrong", "not what numpy computes"), ("slow", "within 2 s"), ("broken", "no compiler")):
        with pytest.raises(peers.PeerFailed, match=said):
            peers.tuned([sys.executable, str(script)], [wrong])(f"benchmark://{KINDS[0]}", 2)


@pytest.mark.parametrize("name", KINDS)
def test_halide_computes_the_same(peers, monkeypatch, name):
    if not peers.HALIDE.exists():
        pytest.skip(f"no {peers.HALIDE.name}")
    monkeypatch.setattr(peers, "TIMINGS", 1)
    monkeypatch.setattr(peers, "TIMING_S", 0.01)
    for scheduler in ("Adams2019", "Mullapudi2016"):
        facts = peers.tuned([str(peers.HALIDE)], [scheduler, "1"])(f"benchmark://{name}", 60)
        assert facts["elapsed_ns"] > 0 and facts["measured"] == 1


TVM_KERNELS = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import tvm, tvm_programs as peer
for name in sys.argv[3:]:
    folder = pathlib.Path(sys.argv[2]) / name.rsplit("/")[-1]
    module = tvm.IRModule({"main": peer.function_of(name)})
    tvm.compile(module, peer.target_of()).export_library(str(folder / "kernel.so"))
    peer.measure(name, folder, 0.01)
"""


def test_tvm_computes_the_same(peers, tmp_path):
    """Without a search, which is another test: from the schedule that a search starts from."""
    if not peers.TVM_PYTHON.exists():
        pytest.skip(f"no {peers.TVM_PYTHON}")
    for name in KINDS:
        folder = tmp_path / name.rsplit("/")[-1]
        folder.mkdir()
        for number, each in enumerate(peers.program_of(np, name)[1]):
            each.tofile(folder / f"in{number}.f32")
    last = peers.asked([str(peers.TVM_PYTHON), "-c", TVM_KERNELS, str(SOURCE / "bench/peers"), str(tmp_path), *KINDS], 200)
    assert last["elapsed_ns"] > 0
    for name in KINDS:
        _, inputs, function = peers.program_of(np, name)
        peers.check_output(np.fromfile(tmp_path / name.rsplit("/")[-1] / "out.f32", np.float32), function(*inputs))


def test_every_way_that_is_installed_has_its_line(peers, tmp_path):
    out = tmp_path / "runs.jsonl"
    arguments = ("--programs", "mm64_240_64", "--seconds", "2", "--out", out)
    done = run_bench(*arguments)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    skipped = {line["peer"]: line["why"] for line in lines if line["case"] == "skipped"}
    assert skipped["loopfleet, fitted models"] == "neither --data nor --models"
    assert ("TVM MetaSchedule" in skipped) == (not peers.TVM_PYTHON.exists())
    assert ("Halide Mullapudi2016" in skipped) == (not peers.HALIDE.exists())
    by_peer = {line["peer"]: line for line in lines if line["case"] == "mm64_240_64, 2 s"}
    assert len(by_peer) == 6 - len(skipped)
    numpy_line = by_peer["numpy"]
    assert numpy_line["ratio"] == pytest.approx(numpy_line["value"] / numpy_line["peer_value"])
    assert numpy_line["candidates"] > 1 and 1 <= numpy_line["seconds"] < 30
    (total,) = (line for line in lines if line["case"] == "summary, 2 s" and line["peer"] == "numpy")
    assert total["ratio"] == pytest.approx(numpy_line["ratio"]) and total["ahead"] in ("0 of 1", "1 of 1")

    # A failed run is tried again; the others are not.
    kept = out.read_text().splitlines()
    out.write_text("\n".join(line for line in kept if "why" not in json.loads(line)) + "\n")
    again = run_bench(*arguments, "--only", "numpy")
    assert again.returncode == 0 and "benchmark://" not in again.stderr
    assert [json.loads(line) for line in again.stdout.splitlines()][0] == numpy_line


def test_what_is_wrong_in_its_arguments_is_said(tmp_path):
    for wrong, said in ((("--programs", "mm64_240_65"), "mm64_240_64"), (("--cores", "99"), "--cores must be from 1 to"),
                        (("--data", "rows"), "--data needs --out or --models"),
                        (("--models", tmp_path), "has no cost.npz")):
        done = run_bench(*wrong)
        assert done.returncode != 0 and said in done.stderr
