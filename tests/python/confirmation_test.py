"""Kernels measured again: winners of a batch, and a campaign's share."""

import asyncio
import json
import os
import subprocess
from dataclasses import dataclass

import pytest

import loopfleet
from loopfleet import campaign
from loopfleet.campaign import __main__ as campaign_command
from loopfleet.campaign.remeasurement import sampled
from loopfleet.confirmation import Confirmation, Confirmed, Turns, Winners, kernels_by_speed
from loopfleet.export import export
from loopfleet.rows import rows_of_file

ACTIONS = [[], ["split_4"], ["down", "split_4"], ["swap_down"], ["down", "swap_down"], ["nonsense"]]
JOBS = [{"benchmark": f"benchmark://mm-v0/mm{size}_16_16", "actions": actions, "cut_above_ns": 10**9, "tag": [size]}
        for size in (24, 16) for actions in ACTIONS]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with loopfleet.LocalCluster(workers=1, database=tmp_path_factory.mktemp("db") / "results.db") as running:
        yield running


def took(ns, code, *, benchmark="b", grade="A", hardware="cpu:x", status="ok"):
    return {"status": status, "benchmark": benchmark, "actions": [], "elapsed_ns": ns, "grade": grade,
            "hardware": {"class": hardware}, "compiler": {"code_hash": code}}


def test_winners_are_the_quickest_kernels_of_each_benchmark_and_class():
    answers = [took(300, "1"), took(100, "2"), took(90, "2"), took(95, "2"), took(10, "3", grade="D"),
               took(None, "4", status="failed"), took(500, "1", benchmark="a"), took(700, "1", hardware="cpu:y"),
               {**took(1, "1"), "benchmark": None, "ir": "a tree"}]
    assert list(kernels_by_speed(enumerate(answers)).items()) == [
        (("a", "cpu:x"), [6]), (("a tree", "cpu:x"), [8]), (("b", "cpu:x"), [2, 0]), (("b", "cpu:y"), [7])]


def test_bias_is_of_the_median_of_new_figures():
    first = took(100, "1")
    again = [took(104, "1"), took(101, "1", grade="B"), took(None, "1", status="failed"), took(5, "1", hardware="cpu:y"),
             took(160, "1", grade="C")]
    good = Confirmed.of(first, again)
    assert (good.remeasured_ns, good.confirmed_ns, good.bias) == ([104, 101], 102.5, pytest.approx(0.025))
    none = Confirmed.of(first, [])
    assert (none.confirmed_ns, none.bias) == (None, None)
    bad = Confirmed.of(first, [took(95, "1", grade="C")])
    assert (good.disturbed, none.disturbed, bad.disturbed) == (False, False, True)
    both = Confirmation([good, none, bad])
    assert both.bias == pytest.approx(-0.0125)
    assert both.deviation(0.5) == pytest.approx(0.0375) and both.deviation(1) == pytest.approx(0.05)
    assert Confirmation([none]).bias is Confirmation([]).deviation(0.5) is None


@dataclass
class Figure:
    grade: str
    ok: bool = True


def test_turns_go_on_until_enough_figures_are_good():
    def add(turns, grades):
        turns.add(Figure(grade) for grade in grades)

    def all_count(place, outcome):
        return True

    quiet = Turns(["a", "b"], all_count, 3)
    assert quiet.jobs() == ["a", "b"] * 3
    add(quiet, "ABABAB")
    assert quiet.pause() is None
    busy = Turns(["a", "b"], all_count, 2)
    add(busy, "ACAC")
    assert busy.pause() > 0 and busy.jobs() == ["b", "b"]
    add(busy, "CA")
    assert [each.grade for each in busy.outcomes[1]] == ["C", "C", "C", "A"]
    for _ in range(2):
        assert busy.pause() > 0
        add(busy, "CC")
    assert busy.pause() is None, "some hosts are never quiet"
    slow = Turns(["a"], all_count, 1)
    add(slow, "C")
    slow._begun -= 2
    assert slow.pause() is None, "it took long enough"
    elsewhere = Turns(["a", "b"], lambda place, outcome: place == 0, 1)
    add(elsewhere, "AA")
    assert elsewhere.pause() > 0 and elsewhere.jobs() == ["b"]


def test_figures_that_came_in_time_confirm(client):
    results = client.evaluate_many(JOBS)
    asked = []

    def evaluate_many(jobs, timeout):
        asked.append(jobs)
        if len(asked) > 1:
            raise loopfleet.DeadlineExceeded("late")
        return [Figure("C") for _ in jobs]

    late = loopfleet.Client("tcp://127.0.0.1:1", timeout=60)
    late.evaluate_many = evaluate_many
    Figure.to_dict = lambda self: {**results.outcomes[0].to_dict(), "grade": self.grade}
    try:
        confirmation = late.confirm(JOBS, results, most=1)
    finally:
        del Figure.to_dict
    assert len(asked) == 2 and any(kernel.remeasured_ns for kernel in confirmation.kernels)


def test_a_client_confirms_winners(client):
    results = client.evaluate_many(JOBS)
    before = client.batches(1)[0]["batch"]
    confirmation = client.confirm(JOBS, results, most=2)
    again = [outcome for each in client.batches(1000) if each["batch"] > before for outcome in client.outcomes(each["batch"])]
    assert [kernel.benchmark for kernel in confirmation.kernels] == [
        "benchmark://mm-v0/mm16_16_16"] * 2 + ["benchmark://mm-v0/mm24_16_16"] * 2
    for kernel in confirmation.kernels:
        assert kernel.actions in ACTIONS and kernel.elapsed_ns in results.elapsed_ns
        figures = {grade: [outcome.elapsed_ns for outcome in again if outcome.ok and outcome.grade in grade
                           and (outcome.benchmark, outcome.actions) == (kernel.benchmark, kernel.actions)]
                   for grade in ("AB", "C")}
        assert sorted(kernel.remeasured_ns) == sorted(figures["AB"] or figures["C"]) != []
    first = next(each["batch"] for each in client.batches() if each["job_count"] == 12)  # a canary's batch is of one job
    sources = [outcome.source for outcome in client.outcomes(first)]
    assert sources == ["measured"] * 12, "not looked up"
    biases = sorted(kernel.confirmed_ns / kernel.elapsed_ns - 1 for kernel in confirmation.kernels)
    assert confirmation.bias == pytest.approx((biases[1] + biases[2]) / 2)
    assert client.confirm([], []).kernels == []


@pytest.mark.parametrize("call, said", [
    (lambda client, results: client.confirm(JOBS[1:], results), "11 jobs, but 12 results"),
    (lambda client, results: client.confirm(JOBS[::-1], results), r"results\[\d+\] is not the outcome of jobs\[\d+\]"),
    (lambda client, results: client.confirm(JOBS, results, most=0), "'most' must be at least 1, not 0"),
    (lambda client, results: client.confirm(JOBS, results, repeats=0), "'repeats' must be at least 1, not 0")])
def test_a_wrong_call_is_a_typed_error(client, call, said):
    with pytest.raises(ValueError, match=said):
        call(client, client.evaluate_many(JOBS))


def test_an_asynchronous_client_confirms_them_too(cluster, client):
    jobs = [*JOBS[:3], {"ir": loopfleet.Walk(benchmark=JOBS[0]["benchmark"]).observe("ir"), "actions": ["split_2"]}]
    client.evaluate_many(jobs)  # patiently

    async def work():
        async with loopfleet.AsyncClient(cluster.address, timeout=300) as asking:
            return await asking.confirm(jobs, await asking.evaluate_many(jobs), most=1, repeats=2)

    for _ in range(20):  # it is not patient
        confirmation = asyncio.run(work())
        if all(kernel.remeasured_ns for kernel in confirmation.kernels):
            break
    assert len(confirmation.kernels) == 2, "a URI and a program in IR text"
    assert all(kernel.remeasured_ns for kernel in confirmation.kernels)


def test_the_command_says_the_same(cluster, client):
    lines = "".join(json.dumps(job) + "\n" for job in JOBS if job["actions"] != ["nonsense"])
    command = [os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet"), "submit", "-", "--confirm", "2", "--json",
               "--address", cluster.address]
    said = json.loads(subprocess.run(command, input=lines, capture_output=True, text=True, timeout=240).stdout)
    first = sorted(client.outcomes(said["batch"]), key=lambda outcome: outcome.index)
    again = [outcome for each in client.batches(4) if each["batch"] > said["batch"] for outcome in client.outcomes(each["batch"])]
    winners = Winners(map(json.loads, lines.splitlines()), first, most=2)
    ours = winners.confirmed([[outcome for outcome in again if (outcome.benchmark, outcome.actions) == (job["benchmark"], job["actions"])]
                              for job in winners.turns(1).all])
    for each in said["confirmed"]:
        del each["job"]
        each["remeasured_ns"].sort()  # in the order of finishing
    assert said["confirmed"] == [{**each.to_dict(), "remeasured_ns": sorted(each.remeasured_ns)}
                                 for each in ours.kernels]


# ---- campaigns

def test_a_sample_is_a_fixed_random_share():
    assert sampled(1000, 0.02, 7) == sampled(1000, 0.02, 7) != sampled(1000, 0.02, 8)
    assert [len(sampled(1000, share, 7)) for share in (0.02, 0.07, 0.0001)] == [20, 70, 1]
    assert sampled(1000, 0.02, 7) < sampled(1000, 0.03, 7)
    assert sampled(9, 1.0, 0) == set(range(9)) and sampled(9, 0.0, 0) == set()


def test_a_bad_share_is_a_typed_error():
    with pytest.raises(loopfleet.LoopfleetError, match="confirm_share must be from 0 to 1, not 2"):
        campaign.Spec("c", 1, ["benchmark://mm-v0/mm8_8_8"], confirm_share=2)


def test_a_new_measurement_is_fresh_uncut_and_where_the_first_was():
    spec = campaign.Spec("c", 1, ["benchmark://mm-v0/mm8_8_8"], cut_above_ns=5, labels=["quiet"])
    first, again = (campaign.job_of(spec, campaign.Point(0, 1, spec.benchmarks[0], [], 2, number), ["a", "b"])
                    for number in (0, 2))
    assert first.pop("cut_above_ns") == 5 and first["tag"] == {"campaign": "c", "point": 0, "copy": 1, "copies": 2}
    assert again == {**first, "fresh": True, "tag": {**first["tag"], "round": 2}}
    assert again["labels"] == ["quiet", "host=b"]
    single = campaign.job_of(spec, campaign.Point(0, 0, spec.benchmarks[0], [], round=1))
    assert single["fresh"] and "cut_above_ns" not in single


@pytest.fixture(scope="module")
def spec():
    return campaign.Spec("again", 40, ["benchmark://mm-v0/mm16_16_16", "benchmark://mm-v0/mm8_16_16"], seed=3,
                         max_length=5, confirm_share=0.1)


def remeasured(folder):
    with open(folder / "remeasured.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_a_campaign_measures_a_share_again_and_goes_on_where_it_was(cluster, spec, tmp_path, capsys):
    folder = tmp_path / "c"
    with cluster.client(timeout=300) as client:
        before = campaign.Spec(**{**vars(spec), "confirm_share": 0.0})
        assert campaign.run(before, folder, client).complete
        assert campaign.remeasured(before, folder) is campaign.remeasured(spec, folder) is None
        first = (folder / "outcomes.jsonl").read_bytes()

        done = []
        stopped = campaign.run(spec, folder, client, on_progress=done.append, stop=lambda: done and done[-1].again)
        assert 0 < stopped.again <= stopped.again_total and (folder / "outcomes.jsonl").read_bytes() == first
        with open(folder / "remeasured.jsonl", "rb+") as file:
            file.truncate(len(file.readline()))
            file.seek(0, os.SEEK_END)
            file.write(b'{"point": 1, "cop')  # killed in the middle of a line
    with cluster.client(timeout=300) as client:
        progress = campaign.run(spec, folder, client)
    assert progress.complete and progress.again == progress.again_total
    assert f" failed, {progress.again} of {progress.again} measured again" in str(progress)

    rows = remeasured(folder)
    keys = [(row["point"], row["round"]) for row in rows]
    points = {point for point, _ in keys}
    assert len(keys) == len(set(keys)) == 3 * len(points)
    measured = {row["point"] for row in campaign.outcomes(folder) if row["outcome"]["status"] == "ok"}
    sample = measured & sampled(40, 0.1, 3)
    assert sample <= points and 1 <= len(points) <= 4 + 2, "and the winners of two benchmarks"
    assert {row["outcome"]["source"] for row in rows if row["outcome"]["status"] == "ok"} <= {"measured", "same_code"}
    for row in rows:
        (point,) = campaign.points_at(spec, row["point"])
        assert (row["outcome"]["benchmark"], row["outcome"]["actions"]) == (point.benchmark, point.actions)
        assert row["outcome"]["tag"]["round"] == row["round"]

    shown = campaign.remeasured(spec, folder)
    assert {kernel.benchmark for kernel in shown.winners.kernels} == set(spec.benchmarks)
    assert len(shown.sample.kernels) == len(sample)
    (tmp_path / "spec.toml").write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in vars(spec).items()))
    assert campaign_command.main(["show", str(tmp_path / "spec.toml"), "--out", str(folder)]) == 0
    assert f"measured again: {shown}" in capsys.readouterr().out
    if shown.sample.bias is not None and shown.winners.bias is not None:
        assert "(95th percentile); 2 winners: too good by" in str(shown)

    larger = campaign.Spec(**{**vars(spec), "confirm_share": 0.3})
    with cluster.client(timeout=300) as client:
        assert campaign.run(larger, folder, client).again > progress.again
    assert remeasured(folder)[:len(rows)] == rows, "a larger share contains the smaller one"
    assert campaign.remeasured(spec, folder) == shown


def test_an_export_has_first_figures_only_unless_it_keeps_all(cluster, spec, tmp_path):
    with cluster.client(timeout=300) as client:
        campaign.run(spec, tmp_path / "c", client)

    def rounds(folder, **options):
        export(rows_of_file(cluster.database), tmp_path / folder, format="jsonl", **options)
        kept = [json.loads(line) for part in (tmp_path / folder / "data").iterdir() for line in part.open()]
        return [row["tag"] for row in kept if row["status"] == "ok" and '"round"' in (row["tag"] or "")]

    assert rounds("first") == []
    assert len(rounds("all", dedup=False)) > 0
