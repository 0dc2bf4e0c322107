"""bench/run.sh search and search_stored: what their figures mean, over runs that are made up, and one small run."""

import importlib
import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from learning_packages import learning_package

import loopfleet
from loopfleet.rows import program_of

SOURCE = Path(os.environ["LOOPFLEET_SOURCE"])
MM = "benchmark://mm-v0/mm{}_16_16"
BEST_NS = 100.0


@pytest.fixture
def case(monkeypatch):
    monkeypatch.syspath_prepend(str(SOURCE / "bench/cases"))
    return importlib.import_module


def run_of(program, way, seconds, elapsed_ns=BEST_NS, **changed):
    """By a core of 2 GFLOP/s; the untuned schedule takes 4 times as long as the best."""
    benchmark = MM.format(program)
    one = {"benchmark": benchmark, "way": way, "seconds": seconds, "seed": 1, "threads": 1, "peak_gflops": 2.0,
           "untuned_ns": 4 * BEST_NS, "elapsed_ns": elapsed_ns, "flop_count": 160, "evaluations": 50, "confirmations": 12,
           "took_s": 1.0, "actions": [], "curve": [[1, 0.1, 4 * BEST_NS], [20, 0.4, elapsed_ns]], **changed}
    return {"key": "|".join(map(str, (benchmark, way, seconds, one["seed"], 1))), **one}


def summaries(case, runs):
    ways = dict.fromkeys(one["way"] for one in runs)
    benchmarks = [one["benchmark"] for one in runs]
    lines = case("search_report").summary(runs, ways, benchmarks)
    json.dumps(lines, allow_nan=False)
    return {line["case"].removeprefix("summary: "): line for line in lines}


def test_a_summary_has_means_over_programs_and_what_runs_took(case):
    runs = [run_of(program, "random", 1.0, took_s=took_s) for program, took_s in ((16, 1.0), (32, 1.2), (48, 1.3))]
    runs += [run_of(program, "greedy", 1.0, 2 * BEST_NS, confirmations=15) for program in (16, 32, 48)]
    random, greedy = summaries(case, runs).values()
    assert (random["programs"], random["value"], random["share_of_best"]) == (3, pytest.approx(4), pytest.approx(1))
    assert (greedy["value"], greedy["share_of_best"], greedy["share_of_peak"]) == pytest.approx((2, 0.5, 0.4))
    assert (random["median_took_s"], random["most_took_s"], random["over_budget"]) == (1.2, 1.3, 1)
    assert (random["evaluations"], random["confirmations"], greedy["confirmations"]) == (50, 12, 15)
    assert greedy["ahead_of_random"] == "0 of 3" and random["ahead_of_random"] is None


def test_what_cannot_be_compared_is_counted(case):
    runs = [run_of(16, "random", 1.0), run_of(32, "random", 1.0, peak_gflops=0), run_of(48, "random", 1.0, None),
            run_of(16, "greedy", 1.0, peak_gflops=0)]
    random, greedy = summaries(case, runs).values()
    assert (random["programs"], random["without_peak"], random["without_figure"]) == (1, 1, 1)
    assert (greedy["programs"], greedy["without_peak"], greedy["value"], greedy["share_of_best"]) == (0, 1, None, None)


def test_an_interval_is_over_programs_and_holds_the_mean(case):
    alone = summaries(case, [run_of(16, "random", 1.0, seed=seed) for seed in (1, 2)])["random, 1 s"]
    assert alone["share_of_best_interval"] is None, "two seeds of one program are no sample of programs"
    runs = [run_of(16 * n, "random", 1.0) for n in range(1, 21)]
    rng = np.random.default_rng(0)
    runs += [run_of(16 * n, "greedy", 1.0, BEST_NS * float(rng.uniform(1, 2))) for n in range(1, 21)]
    greedy = summaries(case, runs)["greedy, 1 s"]
    low, high = greedy["share_of_best_interval"]
    assert 0.5 < low < greedy["share_of_best"] < high < 1
    assert summaries(case, runs)["greedy, 1 s"] == greedy, "the same runs have the same interval"


def test_evaluations_until_a_search_is_nearly_done(case):
    def reaching(program, way, evaluations, seconds=1.0, ns=BEST_NS, **changed):
        return run_of(program, way, seconds, ns, curve=[[1, 0.1, 400.0], [evaluations, 0.3, ns / 0.96], [40, 0.9, ns]], **changed)

    runs = [reaching(program, "random", 20) for program in (16, 32, 48, 64)]
    runs += [reaching(16, "genetic", 5), reaching(32, "genetic", 30), reaching(48, "genetic", 20),
             reaching(64, "genetic", 9, ns=2 * BEST_NS)]
    runs += [reaching(program, "greedy", 3, ns=2 * BEST_NS) for program in (16, 32, 48)]
    runs += [reaching(16, "policy: 10 evaluations", 4, None), run_of(16, "policy: first schedule", None, curve=None)]
    found = summaries(case, runs)
    assert found["random, 1 s"]["evaluations_to_95"] == 20 and found["random, 1 s"]["fewer_than_random"] is None
    assert found["genetic, 1 s"]["evaluations_to_95"] == 25, "of 5, 20, 30 and never"
    assert found["genetic, 1 s"]["fewer_than_random"] == "1.5 of 4", "a tie is half"
    assert found["greedy, 1 s"]["evaluations_to_95"] is None and found["greedy, 1 s"]["fewer_than_random"] == "0 of 3"
    assert found["policy: 10 evaluations"]["fewer_than_random"] == "1 of 1"
    assert found["policy: first schedule"]["evaluations_to_95"] is None


def test_the_table_of_the_docs_comes_from_a_record_alone(case, tmp_path, monkeypatch, capsys):
    search = case("search")
    names = [each.rsplit("/")[-1] for each in search.TEST_PRODUCTS[:2]]
    runs = [run_of(16, way, seconds, ns, benchmark=benchmark) for benchmark in search.TEST_PRODUCTS[:2]
            for way, seconds, ns in (("random", 1.0, 200.0), ("random", 10.0, 100.0), ("policy: first schedule", None, 125.0),
                                     ("policy and cost model: 10 evaluations", None, 100.0),
                                     ("policy and cost model, learning on", 1.0, 100.0))]
    runs = [{**one, "key": str(number)} for number, one in enumerate(runs)]
    runs.pop()
    for one in runs:
        one.pop("confirmations")  # records that were made before these were counted
    out, table = tmp_path / "runs.jsonl", tmp_path / "table.md"
    out.write_text("".join(json.dumps(one) + "\n" for one in runs))
    monkeypatch.setattr(loopfleet, "LocalCluster", lambda **_: pytest.fail("nothing is to be measured"))

    def made(path, *more):
        monkeypatch.setattr(sys, "argv", ["search", "--out", str(path), "--markdown", str(table), *more])
        search.main()
        return table.read_text(), capsys.readouterr().out

    text, said = made(out, "--programs", ",".join(names))
    assert text == """\
| way | 1 s, 1 to 2 programs: speed-up | of peak | of best | evaluations | 10 s, 2 programs: speed-up | of peak | of best | evaluations |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| random | 2.00 | 0.400 | 0.500 | 50 | 4.00 | 0.800 | 1.000 | 50 |
| policy and cost model, learning on | 4.00 | 0.800 | 1.000 | 50 |  |  |  |  |

| way | first schedule, 2 programs: speed-up | of peak | of best | evaluations | 10 evaluations, 2 programs: speed-up | of peak | of best | evaluations |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| policy | 3.20 | 0.640 | 0.800 | 50 |  |  |  |  |
| policy and cost model |  |  |  |  | 4.00 | 0.800 | 1.000 | 50 |
"""
    printed = tmp_path / "printed.jsonl"
    printed.write_text('{"bench": "search", "case": "mm64: random, 1 s, seed 1", "value": 1.0}\n' + said)
    assert made(printed)[0] == text, "of the summaries that were printed"
    assert made(out, "--only", "learning on", "--programs", names[0])[0].count("\n") == 3
    out.write_text('{"bench": "search_stored", "case": "mm64", "value": 1.0}\n')
    with pytest.raises(SystemExit, match="nor a summary"):
        made(out)
    with pytest.raises(SystemExit):
        made(tmp_path / "none.jsonl")


@pytest.mark.parametrize("record", sorted(each.name for each in SOURCE.glob("docs/measurements/*-search-*.jsonl")))
def test_records_can_still_be_read(case, record):
    path = SOURCE / "docs/measurements" / record
    runs, printed = case("search_report").read_record(path)
    ways = dict.fromkeys(one["way"] for one in runs.values())
    lines = case("search_report").summary(list(runs.values()), ways, {one["benchmark"] for one in runs.values()}) or printed
    assert len(case("search_report").markdown(lines).splitlines()) > 2 or not printed


@pytest.mark.parametrize("peaks, kept", [([0.0, 50.0], 50.0), ([0.0, 0.0, 60.0], 60.0), ([40.0], 40.0)])
def test_a_run_whose_worker_is_in_quarantine_is_measured_again(case, tmp_path, monkeypatch, capsys, peaks, kept):
    search = case("search")
    left = list(peaks)
    client = SimpleNamespace(peak_gflops=lambda: left.pop(0))
    monkeypatch.setattr(loopfleet, "LocalCluster",
                        lambda **_: nullcontext(SimpleNamespace(client=lambda: nullcontext(client))))
    given = SimpleNamespace(benchmarks=[MM.format(16)], seeds=1, threads=1, workers=1)
    facts = {name: run_of(16, "x", None)[name] for name in ("untuned_ns", "elapsed_ns", "flop_count", "evaluations", "took_s")}
    ways = {"x": (lambda *_: facts, [None])}
    runs = search.Runs(tmp_path / "runs.jsonl")
    while True:
        search.measure(given, ways, runs)
        (one,) = search.Runs(tmp_path / "runs.jsonl").found.values()
        if one["peak_gflops"]:
            break
    assert one["peak_gflops"] == kept and not left


def test_an_agent_is_never_trained_on_what_it_is_judged_by(case, tmp_path):
    programs, ways = case("search_programs"), case("search_ways")
    given = SimpleNamespace(table=1, workers=1, threads=1, agent_steps=32)
    for judged in (programs.TEST_PRODUCTS[3], "benchmark://mm64_256_16_range-v0/" + programs.TEST_PRODUCTS[3].rsplit("/")[-1]):
        with pytest.raises(ValueError, match="must not be trained on it"):
            ways.agent_of("DQN", given, tmp_path, [programs.TRAINING_PRODUCTS[0], judged])
    for table in (1, 2):
        assert not any(map(programs.is_judged, programs.training_programs(table)))
    assert program_of(programs.TEST_PRODUCTS[0], None)[0] in programs._JUDGED


@pytest.mark.parametrize("name", ["DQN", "PPO"])
def test_an_agent_is_trained_once_and_then_read(case, tmp_path, monkeypatch, capsys, name):
    learning_package("torch")
    ways = case("search_ways")
    given = SimpleNamespace(table=1, workers=1, threads=1, agent_steps=64)
    programs = ["benchmark://mm-v0/mm64_64_64", "benchmark://mm-v0/mm80_80_80"]
    trained = ways.agent_of(name, given, tmp_path, programs)
    monkeypatch.setattr(loopfleet, "LocalCluster", lambda **_: pytest.fail("it is trained already"))
    read = ways.agent_of(name, given, tmp_path)
    assert "--agent-steps plays no part" in capsys.readouterr().err
    judged = case("search_programs").TEST_PRODUCTS[0]
    proposed = read.propose(judged, 9)
    assert [proposed[0]] == trained.propose(judged, 1), "the first one is not drawn by lot"
    keys = set()
    for actions in proposed:
        walk = loopfleet.Walk(benchmark=judged)
        for action in actions:
            walk.apply(action)
        keys.add(walk.tree_key)
    assert len(keys) == len(proposed) <= 9, "legal, different trees"


# ---- search_stored


def found(actions, first_ns, *confirmed, disturbed=()):
    return {"benchmark": MM.format(16), "best": {"actions": actions, "elapsed_ns": first_ns}, "evaluations": 40, "seconds": 1.0,
            "confirmed": [{"actions": each, "confirmed_ns": ns, "disturbed": each in disturbed} for each, ns in confirmed]}


def test_a_bad_choice_from_the_store_has_a_ratio_above_one(case, monkeypatch):
    stored = case("search_stored")
    monkeypatch.setattr(stored, "measured_again", lambda live, repeated: pytest.fail("both were confirmed"))
    live = found(["split_8"], 90, ([], 400), (["split_4"], 150), (["split_8"], 100))
    line = stored.line_of(live, found(["split_4"], 80))
    assert (line["value"], line["peer_value"], line["ratio"], line["first_ratio"]) == (150, 100, 1.5, pytest.approx(8 / 9))
    assert not line["same_schedule"] and line["measured"] == "at the live search's end"
    monkeypatch.setattr(stored, "measured_again", lambda live, repeated: (100, 130))
    for unconfirmed in (["split_2"], ["split_4"]):
        live = found(["split_8"], 90, (["split_4"], None), (["split_8"], 100))
        line = stored.line_of(live, found(unconfirmed, 80))
        assert (line["ratio"], line["measured"]) == (1.3, "again, in turns")
    live = found(["split_8"], 90, (["split_4"], 200), (["split_8"], 100), disturbed=(["split_4"],))
    assert stored.line_of(live, found(["split_4"], 80))["measured"] == "again, in turns"


def test_two_choices_are_measured_again_in_turns(case):
    stored = case("search_stored")
    live, repeated = (dict(found(actions, 1), benchmark="benchmark://mm-v0/mm64_64_64") for actions in ([], ["swap_down"]))
    try:
        chosen, again = stored.measured_again(live, repeated)
    except SystemExit as too_busy:
        pytest.skip(str(too_busy))
    assert chosen > 0 and again > 0
