"""loopfleet.models: what models learn from a made-up landscape, on programs that they have not seen; how they are
kept in files; and searches that use them, on a real cluster."""

import itertools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from documents import blocks_of
from learning_packages import learning_package
from model_files import read_parts, write_parts

import loopfleet
from loopfleet import models
from loopfleet.actions import LOOPTUNE_ACTIONS
from loopfleet.models import (BadModelFile, ComparisonModel, CostModel, Measured, ModelError, NotFitted, PolicyModel,
                              UnknownProgram, evaluate, features, landscape)
from loopfleet.models.comparison_model import pairwise_accuracy
from loopfleet.models.evaluation import Evaluation, Judgement, Summary, peak_at, split_parts
from loopfleet.models.landscapes import expected_best, rows_of_campaign, table
from loopfleet.splits import Split

SOURCE = Path(os.environ["LOOPFLEET_SOURCE"])
MM = "benchmark://mm-v0/mm{}_{}_{}"
SIZES = [MM.format(m, n, k) for m, n, k in itertools.product((32, 64, 128), (48, 96), (32, 64, 160))]
UNSEEN = MM.format(80, 112, 48)


def column(x, name):
    return x[:, models.FEATURE_NAMES.index(name)]


def made_up_ns(x):
    """Quick are trees whose innermost loop steps by one element and has a size of about 16."""
    slowness = np.abs(column(x, "loop0_size") - 4) / 2 + 2 * (column(x, "loop0_stride_1") < 0.4) + column(
        x, "loop0_is_reduced")
    return 0.05 * np.exp2(column(x, "flop_count") + slowness)


def walks_of(benchmark, count, rng):
    walk = loopfleet.Walk(benchmark=benchmark, action_space=LOOPTUNE_ACTIONS, features="agent58")
    for _ in range(count):
        walk.restart()
        for _ in range(int(rng.integers(0, 10))):
            walk.step(int(rng.choice(np.flatnonzero(walk.mask()))))
        yield walk.copy()


def rows_of(benchmarks, count, seed=0):
    rng = np.random.default_rng(seed)
    walks = [(benchmark, walk) for benchmark in benchmarks for walk in walks_of(benchmark, count, rng)]
    times = made_up_ns(features([walk for _, walk in walks])) * np.exp(0.02 * rng.standard_normal(len(walks)))
    return [{"benchmark": benchmark, "ir": None, "actions": walk.history, "elapsed_ns": float(ns),
             "tree_key": walk.tree_key.hex(), "status": "ok", "grade": "A", "suspect": None}
            for (benchmark, walk), ns in zip(walks, times)]


@pytest.fixture(scope="module")
def rows():
    return rows_of(SIZES, 60)


@pytest.fixture(scope="module")
def data(rows):
    return Measured.of(rows)


@pytest.fixture(scope="module")
def unseen():
    return Measured.of(rows_of([UNSEEN, MM.format(100, 64, 96)], 80, seed=9))


def model_of(kind, make=CostModel):
    learning_package("xgboost" if kind == "trees" else "torch")
    return make(kind, threads=1)


def test_importing_models_imports_nothing_heavy():
    said = subprocess.run([sys.executable, "-c", "import sys, loopfleet; before = set(sys.modules)\nimport loopfleet.models\n"
                           "from loopfleet.models import CostModel, PolicyModel, evaluate\n"
                           "print(*sorted(name for name in set(sys.modules) - before if '.' not in name))"],
                          capture_output=True, text=True, check=True).stdout.split()
    assert not {"xgboost", "torch", "sklearn", "pandas", "pyarrow", "matplotlib", "multiprocessing"} & set(said)
    alone = subprocess.run([sys.executable, "-c", "import sys, loopfleet; print('loopfleet.models' in sys.modules)"],
                           capture_output=True, text=True, check=True)
    assert alone.stdout.strip() == "False"
    with pytest.raises(AttributeError, match="CostModle"):
        models.CostModle
    assert all(getattr(models, name) is not None for name in models.__all__), "torch is needed to make an agent only"


# ---- features


def test_equal_trees_have_equal_features_and_others_have_not():
    plain, moved, split = features([("mm-v0/mm32_48_64", []), ("mm-v0/mm32_48_64", ["down", "down"]),
                                    ("mm-v0/mm32_48_64", ["down", "down", "split_16"])])
    assert plain.shape == (len(models.FEATURE_NAMES),) and (plain == moved).all() and (plain != split).any()
    walk = loopfleet.Walk(benchmark="benchmark://mm-v0/mm32_48_64", features="agent20")
    as_ir = {"ir": walk.observe("ir"), "actions": []}
    assert (features([walk, as_ir]) == plain).all()


def test_features_say_what_the_innermost_loops_are():
    (x,) = features([("mm-v0/mm32_48_64", ["down", "down", "split_16", "vectorize"])])  # m, k, n, n' = 16
    named = dict(zip(models.FEATURE_NAMES, x))
    assert named["loop0_size"] == pytest.approx(np.log2(17)) and named["loop1_size"] == pytest.approx(np.log2(4))
    assert named["loop1_same_dim_extent"] == pytest.approx(np.log2(17)) and named["loop0_stride_1"] == 1
    assert [named[f"loop{i}_is_reduced"] for i in range(4)] == [0, 0, 1, 0]
    assert named["loop1_vectorize"] == 1 or named["loop0_vectorize"] == 1
    assert named["extent"] == pytest.approx(np.log2(32 * 48 * 64 + 1), rel=1e-5)
    assert named["nests"] == 1 and named["other_loops"] == 1, "log2(1 + 1): the loop that writes is in the same nest"
    with pytest.raises(loopfleet.JobError, match="splt_16"):
        features([("mm-v0/mm32_48_64", ["splt_16"])])
    with pytest.raises(ModelError, match="a schedule is"):
        features([7])


def test_rows_of_other_rules_are_rebuilt():
    walk = loopfleet.Walk(benchmark=UNSEEN, rules="loop_nest")
    for name in ("swap_down", "split_8"):
        walk.apply(name)
    row = {"benchmark": UNSEEN, "ir": None, "actions": ["swap_down", "split_8"], "tree_key": walk.tree_key.hex()}
    assert (features([row]) == features([walk])).all()
    with pytest.raises(loopfleet.JobError, match="another key"):
        features([{**row, "tree_key": "00" * 16}])


# ---- rows


def test_rows_are_the_same_as_pandas_has_them():
    tree = loopfleet.Walk(benchmark=UNSEEN)
    rows = [{"benchmark": UNSEEN, "ir": None, "actions": ["down", "split_4"], "elapsed_ns": 5.0, "status": "ok",
             "suspect": None, "tree_key": None},
            {"benchmark": None, "ir": tree.observe("ir"), "actions": [], "elapsed_ns": 7.0, "status": "ok",
             "suspect": None, "tree_key": tree.tree_key.hex()}]
    read = [{name: float("nan") if value is None else np.array(value, object) if name == "actions" else value
             for name, value in row.items()} for row in rows]
    assert (features(read) == features(rows)).all()
    ours, theirs = Measured.of(rows), Measured.of(read)
    assert (ours.x == theirs.x).all() and ours.program.tolist() == theirs.program.tolist() and ours.ir == theirs.ir

def test_only_trusted_figures_are_used(rows):
    row = rows[3]
    others = [{**row, "status": "TIMEOUT", "elapsed_ns": None}, {**row, "grade": "D"}, {**row, "suspect": "drift"}]
    assert len(Measured.of([row, *others])) == 1
    assert len(Measured.of([row, *others], use_suspect=True)) == 2
    with pytest.raises(ModelError, match="1 with status TIMEOUT, 1 of grade D, 1 suspect"):
        Measured.of(others)
    with pytest.raises(ModelError, match="5 without elapsed_ns"):
        Measured.of([{**row, "elapsed_ns": ns} for ns in (float("nan"), float("inf"), 0, -1.0, None)])
    with pytest.raises(ModelError, match="no 'elapsed_ns'"):
        Measured.of([{"benchmark": UNSEEN, "actions": []}])
    with pytest.warns(UserWarning, match="1 row left out; .*another key"):
        assert len(Measured.of([row, {**row, "tree_key": "00" * 16}])) == 1
    plain = Measured.of([{"benchmark": "mm-v0/mm32_32_32", "actions": [], "elapsed_ns": 5.0}])
    assert plain.flop_count[0] == 2 * 32**3 - 32**2 or plain.flop_count[0] == 2 * 32**3


def test_figures_of_several_conditions_are_not_compared(rows, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq
    here = [{**row, "hardware_class": "cpu:x", "threads": 1, "cache": "warm"} for row in rows[:8]]
    others = [{**here[0], "hardware_class": "cpu:y"}, {**here[1], "threads": 2}, {**here[2], "cache": "cold"}]
    for other in (*others, rows[0]):
        with pytest.raises(ModelError, match="hardware_class='cpu:x', threads=1, cache='warm' \\(8\\)"):
            Measured.of([*here, other])
    unused = [{**others[0], "grade": "D"}, {**others[1], "suspect": "drift"}]
    assert len(Measured.of([*here, *unused])) == 8
    assert len(Measured.of([*rows[:4], {**rows[4], "threads": float("nan")}])) == 5, "it is not known, as of the others"
    file = tmp_path / "data.parquet"
    pq.write_table(pa.Table.from_pylist([*here, *others]), file)
    with pytest.raises(ModelError, match="cpu:y"):
        Measured.of(models.read_rows(file))
    chosen = models.read_rows(file, hardware_class="cpu:x", threads=1, cache="warm")
    assert len(Measured.of(chosen)) == 8
    with pytest.raises(ModelError, match="nearest: threads"):
        models.read_rows(file, thread=1)
    said = run_command("evaluate", file, "--models", "trees")
    assert said.returncode == 1 and "--hardware-class" in said.stderr
    none = run_command("evaluate", file, "--models", "trees", "--hardware-class", "cpu:z", "--kernel-threads", "1")
    assert none.returncode == 1 and "none of the rows" in none.stderr


# ---- cost and comparison models


@pytest.mark.parametrize("kind", ["trees", "network"])
def test_a_cost_model_predicts_programs_that_it_has_not_seen(kind, data, unseen, tmp_path):
    model = model_of(kind)
    with pytest.raises(NotFitted):
        model.save(tmp_path / "x")
    model.fit(data)
    schedules = [(UNSEEN, actions) for actions in unseen.actions[:80]]
    predicted = model.predict(schedules)
    error = np.log2(predicted / unseen.elapsed_ns[:80])
    spread = np.log2(unseen.elapsed_ns[:80]).std()
    assert np.sqrt(np.mean(error**2)) < 0.6 * spread, "nanoseconds, and better than the mean"
    assert peak_at(unseen, -model.slowness(unseen.x), 1) > 0.85

    model.save(tmp_path / "model.npz")
    again = CostModel.load(tmp_path / "model.npz")
    assert again.predict(schedules) == pytest.approx(predicted, rel=1e-6)
    with pytest.raises(BadModelFile, match="holds a CostModel, not a ComparisonModel"):
        ComparisonModel.load(tmp_path / "model.npz")


@pytest.mark.parametrize("kind", ["trees", "network"])
def test_a_comparison_model_names_the_faster_of_two(kind, data, unseen, tmp_path):
    model = model_of(kind, ComparisonModel).fit(data)
    first, second = unseen.pairs(200, np.random.default_rng(0))
    schedules = [{"benchmark": unseen.benchmark[i], "actions": unseen.actions[i]} for i in range(len(unseen))]
    chance = model.predict([schedules[i] for i in first], [schedules[i] for i in second])
    assert np.mean((chance > 0.5) == (unseen.elapsed_ns[first] < unseen.elapsed_ns[second])) > 0.8
    assert chance.min() >= 0 and chance.max() <= 1
    back = model.predict([schedules[i] for i in second], [schedules[i] for i in first])
    assert chance + back == pytest.approx(1.0)
    with pytest.raises(ModelError, match="2 first schedules and 1 second"):
        model.predict(schedules[:2], schedules[:1])
    model.save(tmp_path / "model.npz")
    again = ComparisonModel.load(tmp_path / "model.npz")
    assert again.predict(schedules[:9], schedules[9:18]) == pytest.approx(model.predict(schedules[:9], schedules[9:18]), rel=1e-6)


@pytest.mark.parametrize("make", [CostModel, ComparisonModel, PolicyModel])
def test_a_file_keeps_how_the_model_is_fitted(make, data, tmp_path):
    learning_package("xgboost")
    given = {} if make is PolicyModel else {"rounds": 40, "epochs": 3}
    model = make(seed=np.int64(7), threads=1, **given).fit(data)
    model.save(tmp_path / "model.npz")
    again = make.load(tmp_path / "model.npz")
    assert {name: getattr(again, name) for name in ("seed", *given)} == {"seed": 7, **given}
    facts, arrays = read_parts(tmp_path / "model.npz")
    write_parts(tmp_path / "old.npz", {name: value for name, value in facts.items() if name not in ("seed", *given)}, arrays)
    assert make.load(tmp_path / "old.npz").seed == 0, "as earlier versions wrote it"
    if make is not CostModel:
        return
    walks = [walk.history for walk in walks_of(UNSEEN, 60, np.random.default_rng(3))]
    times = made_up_ns(features([(UNSEEN, actions) for actions in walks])).tolist()
    scores = []
    for scorer in (model.scorer_for(UNSEEN, None), again.scorer_for(UNSEEN, None)):
        scorer.learn(walks[:40], times[:40])
        scores.append(scorer(walks[40:]))
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)


def test_bad_arguments_and_files_name_what_is_wrong(data, tmp_path):
    with pytest.raises(ModelError, match="nearest: network"):
        CostModel("netwrk")
    with pytest.raises(NotFitted):
        CostModel().predict([(UNSEEN, [])])
    with pytest.raises(ModelError, match="differ by more than"):
        learning_package("xgboost")
        ComparisonModel(threads=1).fit(data.take([0, 70]))

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    files = {"pickle": pickle.dumps(Trap()), "text": b"not a model", "empty": b""}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadModelFile, match=name):
            CostModel.load(tmp_path / name)
    np.savez(tmp_path / "trap.npz", facts=np.array([Trap()], object))
    with pytest.raises(BadModelFile, match="trap.npz"):
        CostModel.load(tmp_path / "trap.npz")
    assert not (tmp_path / "sprung").exists(), "nothing of a file runs"
    with pytest.raises(BadModelFile, match="there is no file"):
        CostModel.load(tmp_path / "missing")


def test_damaged_and_outdated_models_are_refused(data, tmp_path):
    model = model_of("trees")
    model.rounds = 5
    model.fit(data).save(tmp_path / "m.npz")
    facts, arrays = read_parts(tmp_path / "m.npz")

    def refused(match, facts=facts, **changed):
        write_parts(tmp_path / "bad.npz", facts, {**arrays, **changed})
        with pytest.raises(BadModelFile, match=match):
            CostModel.load(tmp_path / "bad.npz")

    refused("other features", {**facts, "features": ["a"]})
    refused("format 99", {**facts, "format": 99})
    left, roots = arrays["trees.left"], arrays["trees.roots"]
    refused("damaged.*left have shape", **{"trees.left": left[:9]})
    refused("damaged.*type float32", **{"trees.left": left.astype(np.float32)})
    refused("damaged.*not there", **{"trees.left": np.where(left == left[0], len(left), left)})
    refused("damaged.*not there", **{"trees.right": np.zeros_like(left)})  # a way in a circle
    refused("damaged.*not there", **{"trees.feature": np.full_like(left, len(models.FEATURE_NAMES))})
    refused("damaged.*not there", **{"trees.roots": roots - 1})
    refused("unknown kind 'forest'", {**facts, "model": "forest"})
    refused("damaged", {name: value for name, value in facts.items() if name != "line"})


def test_a_missing_package_is_named_with_its_extra(data, tmp_path, monkeypatch):
    learning_package("xgboost")
    model = CostModel(rounds=2, threads=1).fit(data)
    model.save(tmp_path / "m.npz")
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(models.MissingPackage, match=r"xgboost is not installed: pip install '\.\[models\]' in"):
        CostModel().fit(data)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "xgboost")
    monkeypatch.setattr(CostModel, "fit", lambda *_: pytest.fail("it is fitted before the packages are looked for"))
    with pytest.raises(models.MissingPackage, match=r"torch is not installed: pip install '\.\[models,torch\]' in"):
        evaluate(data)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    assert issubclass(models.MissingPackage, ImportError)
    assert CostModel.load(tmp_path / "m.npz").predict([(UNSEEN, [])]) > 0, "only fitting needs it"


def test_trees_predict_what_xgboost_does():
    xgboost = learning_package("xgboost")
    from loopfleet.models.trees import _trees_of, fit_trees
    rng = np.random.default_rng(2)
    x = rng.random((500, 12), np.float32)
    y = np.sin(9 * x[:, 0]) + 3 * (x[:, 1] > 0.5) + 0.1 * rng.standard_normal(500)
    for objective in ("reg:squarederror", "reg:absoluteerror"):
        booster = xgboost.train({"objective": objective, "max_depth": 6, "nthread": 1, "base_score": 0.0},
                                xgboost.DMatrix(x, y, nthread=1), 40)
        assert _trees_of(booster).predict(x) == pytest.approx(booster.inplace_predict(x), abs=1e-4)
    trees = fit_trees(x[:400], y[:400], objective="reg:squarederror", rounds=900, seed=0, threads=1,
                      validation=(x[400:], y[400:]))
    assert 1 < len(trees.roots) < 900, "it stops when the validation part gets no better"
    assert np.sqrt(np.mean((trees.predict(x[400:]) - y[400:]) ** 2)) < 0.5 * y.std()


# ---- policy


def test_a_policy_proposes_good_legal_schedules_for_new_programs(data, tmp_path):
    learning_package("xgboost")
    policy = PolicyModel(threads=1).fit(data)
    proposals = policy.propose("mm-v0/mm80_112_48", 8)
    assert 1 < len(proposals) <= 8
    keys = set()
    for actions in proposals:
        walk = loopfleet.Walk(benchmark=UNSEEN)
        assert all(walk.apply(name) for name in actions)
        keys.add(walk.tree_key)
    assert len(keys) == len(proposals), "each another tree"
    times = made_up_ns(features([(UNSEEN, actions) for actions in proposals]))
    random = made_up_ns(features(walks_of(UNSEEN, 200, np.random.default_rng(5))))
    assert times[0] <= np.quantile(random, 0.1), "the first beats nine of ten random walks"
    policy.save(tmp_path / "policy.npz")
    assert PolicyModel.load(tmp_path / "policy.npz").propose(UNSEEN, 8) == proposals
    with np.load(tmp_path / "policy.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "bad.npz", **{**arrays, "examples": np.frombuffer(b'[{"kind": "x", "sizes": 3}]', np.uint8)})
    with pytest.raises(BadModelFile, match="bad.npz is damaged"):
        PolicyModel.load(tmp_path / "bad.npz")
    ir = loopfleet.Walk(benchmark=UNSEEN).observe("ir")
    assert PolicyModel.load(tmp_path / "policy.npz").propose(ir=ir)


def test_a_policy_says_what_it_does_not_know(data, tmp_path):
    with pytest.raises(NotFitted):
        PolicyModel().propose(UNSEEN)
    learning_package("xgboost")
    policy = PolicyModel(threads=1).fit(data)
    with pytest.raises(UnknownProgram, match="knows read-read-multiply-add-write/3") as error:
        policy.propose("program-v0/reduce_add64_64")
    assert error.value.known == ["read-read-multiply-add-write/3"]
    with pytest.raises(loopfleet.JobError, match="mm-v0"):
        policy.propose("benchmark://mm-v9/mm8_8_8")
    with pytest.raises(ModelError, match="at least 1"):
        PolicyModel(kept=0)


# ---- evaluation


def test_evaluation_judges_by_held_out_regions_beside_chance(rows):
    learning_package("xgboost")
    data = Measured.of(rows)
    parts = split_parts(data, "region", 1)
    regions = [set(part.region) for part in parts.values()]
    assert not regions[0] & regions[2] and not regions[1] & regions[2] and sum(map(len, parts.values())) == len(data)
    found = evaluate(data, ["trees", "comparison"], seed=1, threads=1)
    trees, chance = found.judgements["trees"], found.judgements["random"]
    assert trees.peak_at_1 > chance.peak_at_1 + 0.1 and trees.pairwise_accuracy > 0.8
    assert chance.pairwise_accuracy == pytest.approx(0.5, abs=0.03) and chance.rmse_log2 is None
    assert trees.rmse_log2 > 0 and trees.peak_at_1 <= trees.peak_at_5 <= 1
    assert found.judgements["comparison"].rmse_log2 is None and "peak@1" in str(found)
    policy = evaluate(data, ["policy"], seed=1, threads=1).judgements["policy"]
    assert policy.peak_at_1 > chance.peak_at_1 + 0.1 and policy.programs == chance.programs > 1
    for wrong, said in (({"models": ["tree"]}, "nearest: trees"), ({"split": "regions"}, "nearest: region")):
        with pytest.raises(ModelError, match=said):
            evaluate(data, **wrong)
    with pytest.raises(ModelError, match="leave the part"):
        evaluate(data.take(data.program == data.program[0]))


def test_a_policy_has_no_figure_of_programs_that_it_does_not_know(rows, data):
    learning_package("xgboost")
    others = rows_of([f"benchmark://program-v0/reduce_add{m}_{n}" for m in (16, 64, 256) for n in (32, 128)], 40, seed=4)
    policy = PolicyModel(threads=1).fit(rows)
    both = Measured.of([*rows, *others])
    scores = policy.scores(both)
    assert np.isfinite(scores).sum() == len(rows) and np.isnan(scores[len(rows):]).all()
    assert peak_at(both, scores, 1) == peak_at(data, scores[:len(rows)], 1)
    alone = Measured.of(others)
    pairs = alone.pairs(100, np.random.default_rng(0))
    assert np.isnan(peak_at(alone, policy.scores(alone), 1)) and np.isnan(pairwise_accuracy(alone, policy.scores(alone), pairs))
    with pytest.raises(NotFitted):
        PolicyModel().scores(data)


def test_a_summary_has_the_spread_of_its_splits():
    def judged(seed, peak):
        return Evaluation("region", seed, {"test": 9}, {"test": 2},
                          {"policy": Judgement(peak, None, 0.5 if peak is None else peak, None, 2.0, 1)})

    whole = Summary.of([judged(1, 0.5), judged(2, None), judged(3, 0.75)])
    figures = whole.to_dict()["figures"]["policy"]
    assert whole.seeds == [1, 2, 3] and figures["peak_at_1"] == {"mean": 0.625, "least": 0.5, "most": 0.75, "splits": 2}
    assert figures["peak_at_5"] is None and figures["pairwise_accuracy"]["splits"] == 3
    assert "0.625 (0.500 to 0.750)" in str(whole) and "no figure" in str(whole) and "no figure" in str(judged(2, None))


def test_peak_is_what_the_favourite_reaches(data):
    assert peak_at(data, -data.elapsed_ns, 1) == 1
    worst = peak_at(data, data.elapsed_ns, 1)
    assert worst == pytest.approx(np.mean([data.elapsed_ns[places].min() / data.elapsed_ns[places].max()
                                           for places in data.places_by_program()]))
    assert worst < peak_at(data, data.elapsed_ns, 20) < 1


def run_command(*arguments):
    return subprocess.run([sys.executable, "-m", "loopfleet.models", *map(str, arguments)], capture_output=True, text=True)


def test_the_command_evaluates_a_parquet_file_and_an_export(rows, tmp_path):
    learning_package("xgboost")
    import pyarrow as pa
    import pyarrow.parquet as pq
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet")
    done = run_command("evaluate", tmp_path / "data.parquet", "--models", "trees", "--threads", "1", "--json", "--seed", "1")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["split"] == "region" and set(facts["judgements"]) == {"trees", "random"}
    assert facts["judgements"]["trees"]["peak_at_1"] > facts["judgements"]["random"]["peak_at_1"]
    regions = set(Measured.of(rows).region)
    is_whole = [len({Split("region", (0.7, 0.1, 0.2), seed).part_of_key(region) for region in regions}) == 3
                for seed in range(200)]
    seed = next(seed for seed in range(199) if is_whole[seed] and is_whole[seed + 1])
    done = run_command("evaluate", tmp_path / "data.parquet", "--models", "trees,policy", "--threads", "1", "--json", "--seed",
                       seed, "--splits", "2")
    assert done.returncode == 0, done.stderr
    first, second, whole = map(json.loads, done.stdout.splitlines())
    assert [first["seed"], second["seed"]] == whole["seeds"] == [seed, seed + 1] and set(whole["figures"]) == set(first["judgements"])
    spread, peaks = whole["figures"]["policy"]["peak_at_1"], [each["judgements"]["policy"]["peak_at_1"] for each in (first, second)]
    assert (spread["least"], spread["most"], spread["mean"]) == (min(peaks), max(peaks), pytest.approx(np.mean(peaks)))
    (tmp_path / "export/data").mkdir(parents=True)
    third = len(rows) // 3
    for place, part in enumerate(("train", "validation", "test")):
        pq.write_table(pa.Table.from_pylist(rows[place * third:(place + 1) * third]), tmp_path / f"export/data/{part}.parquet")
    assert len(models.read_rows(tmp_path / "export")) == 3 * third
    said = run_command("evaluate", tmp_path / "export", "--models", "trees", "--split", "program", "--seed", "3")
    assert said.returncode == 0 and "random" in said.stdout, said.stderr
    (tmp_path / "x.parquet").write_text("x")
    for arguments, wrong in ((["evaluate", tmp_path / "x.parquet"], "no Parquet file"), (["evaluate", "/no/such"], "/no/such"),
                             (["evaluate", tmp_path / "data.parquet", "--models", "foret"], "unknown model 'foret'"),
                             (["landscape", "/no/such"], "/no/such")):
        failed = run_command(*arguments)
        assert failed.returncode == 1 and wrong in failed.stderr and failed.stdout == "", failed.stderr


# ---- landscapes


def test_the_expected_best_is_the_mean_over_all_choices():
    values = [3.0, 1.0, 4.0, 1.5, 0.0, 2.5]
    for k in range(1, 7):
        assert expected_best(values, k) == pytest.approx(np.mean([max(some) for some in itertools.combinations(values, k)]))
    assert expected_best(np.ones(5000), 1000) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="from 1 to the number of values, 6, not 7"):
        expected_best(values, 7)


def test_a_landscape_is_of_one_program_and_over_its_untuned_schedule(rows):
    walks = [*rows[:60], {**rows[0], "elapsed_ns": None, "tree_key": None}, *rows_of([MM.format(32, 48, 64)], 7)]
    found = {one.benchmark: one for one in landscape(walks, (5, 10, 1000))}
    assert set(found) == {SIZES[0], MM.format(32, 48, 64)}
    first = found[SIZES[0]]
    assert (first.walks, first.without_figure, list(first.expected)) == (61, 1, [5, 10])
    assert 0 < first.expected[5] < first.expected[10] <= first.best
    start = loopfleet.Walk(benchmark=SIZES[0]).tree_key.hex()
    untuned = np.median([row["elapsed_ns"] for row in rows[:60] if row["tree_key"] == start])
    assert first.best == pytest.approx(untuned / min(row["elapsed_ns"] for row in rows[:60]))
    assert f"| {SIZES[0].rsplit('/')[-1]} | 61 | 1 |" in table(list(found.values()))
    with pytest.raises(ModelError, match="untuned"):
        landscape([row for row in rows if row["tree_key"] != start][:1])


def test_a_landscape_is_of_one_hardware_class(rows, tmp_path):
    def line(point, row, kind):
        failed = row["elapsed_ns"] is None
        return json.dumps({"point": point, "copy": 0, "outcome": {
            **row, "status": "failed" if failed else "ok", "error": {"code": "CUT"} if failed else None,
            "hardware": {"class": kind} if kind else None}})

    walks = [(row, "cpu:x") for row in rows[:60]] + [({**rows[0], "elapsed_ns": None}, None)]
    walks += [({**row, "elapsed_ns": row["elapsed_ns"] / 9}, "cpu:y") for row in rows[:5]]
    (tmp_path / "outcomes.jsonl").write_text("\n".join(line(point, *walk) for point, walk in enumerate(walks)) + "\n")
    with pytest.raises(ModelError, match="hardware_class='cpu:x' \\(60\\); hardware_class='cpu:y' \\(5\\)"):
        landscape(rows_of_campaign(tmp_path))
    assert landscape(rows_of_campaign(tmp_path, "cpu:x")) == landscape([row for row, kind in walks if kind != "cpu:y"])
    assert run_command("landscape", tmp_path).returncode == 1
    assert run_command("landscape", tmp_path, "--hardware-class", "cpu:x").returncode == 0


def test_a_paired_point_counts_once_on_each_hardware_class(rows, tmp_path):
    def lines(kinds):
        return [json.dumps({"point": 0, "copy": copy, "outcome": {
            **rows[0], "elapsed_ns": 10.0 + copy, "status": "ok", "hardware": {"class": kind}}}) for copy, kind in enumerate(kinds)]

    (tmp_path / "outcomes.jsonl").write_text("\n".join(lines(["cpu:y", "cpu:x", "cpu:x"])) + "\n")
    for chosen, elapsed_ns in ((None, 10.0), ("cpu:y", 10.0), ("cpu:x", 11.0)):
        assert [row["elapsed_ns"] for row in rows_of_campaign(tmp_path, chosen)] == [elapsed_ns]


def test_the_untuned_schedule_is_where_the_walks_begin():
    benchmark = "benchmark://mm8_16_128_128-v0/mm8_16_128_128_0132"
    merged = loopfleet.Walk(benchmark=benchmark, merge_all_first=True).tree_key.hex()
    assert merged != loopfleet.Walk(benchmark=benchmark).tree_key.hex()
    row = {"benchmark": benchmark, "actions": [], "tree_key": merged, "elapsed_ns": 50.0}
    (found,) = landscape([{**row, "actions": ["down", "up"], "tree_key": "00" * 16, "elapsed_ns": 25.0}, row])
    assert (found.untuned_ns, found.best) == (50.0, 2.0)
    nan = float("nan")  # what pandas makes of None
    (found,) = landscape([{**row, "actions": np.array([]), "ir": nan}, {**row, "actions": None, "elapsed_ns": nan},
                          {**row, "actions": np.array(["down"]), "tree_key": nan, "elapsed_ns": 25.0}])
    assert (found.walks, found.without_figure, found.untuned_ns, found.best) == (3, 1, 50.0, 2.0)


# ---- searches


def test_a_search_teaches_its_cost_model_and_starts_with_proposals(client, data):
    learning_package("xgboost")
    policy, told = PolicyModel(threads=1).fit(data), []

    class Watched(CostModel):
        def scorer_for(self, benchmark, ir):
            self.scorer = super().scorer_for(benchmark, ir)
            return self.scorer

    model = Watched(threads=1)
    found = loopfleet.search(UNSEEN, "genetic", evaluations=70, in_flight=16, scorer=model, start=policy, client=client,
                             confirm=False)
    assert found.evaluations == 70 and found.best_ns <= found.untuned_ns
    assert model.scorer.fits >= 2 and model.scorer.seconds > 0 and not model.is_fitted, "the model itself stays as it is"
    wanted = policy.start_for(UNSEEN, None)

    def strategy(most, results):
        told.extend(results)
        return []

    loopfleet.search(UNSEEN, strategy, evaluations=20, start=wanted, client=client, confirm=False)
    assert [actions for actions, _ in told] == [[], *wanted] and all(ns for _, ns in told)
    with pytest.raises(ValueError, match="splt_4"):
        loopfleet.search(UNSEEN, evaluations=5, start=[["splt_4"]], client=client)


def test_an_online_scorer_learns_what_is_quick():
    learning_package("xgboost")
    from loopfleet.models.online import OnlineScorer
    rng = np.random.default_rng(1)
    walks = [walk.history for walk in walks_of(UNSEEN, 300, rng)]
    times = made_up_ns(features([(UNSEEN, actions) for actions in walks]))
    scorer = OnlineScorer(UNSEEN, None, None)
    assert scorer(walks[:3]) == [0, 0, 0]
    for at in range(0, 200, 20):
        scorer.learn(walks[at:at + 20], [float(ns) if ns < np.quantile(times, 0.98) else None for ns in times[at:at + 20]])
    assert 3 <= scorer.fits < 10
    scores = np.array(scorer(walks[200:]))
    order = np.argsort(scores, kind="stable")
    assert np.log2(times[200:][order[:10]]).mean() < np.log2(times[200:]).mean() - 0.3
    assert np.corrcoef(scores, np.log2(times[200:]))[0, 1] > 0.7


# ---- bench/run.sh search


def test_the_bench_goes_on_where_it_was(rows, tmp_path, monkeypatch, capsys):
    learning_package("xgboost")
    import importlib

    import pyarrow as pa
    import pyarrow.parquet as pq
    monkeypatch.syspath_prepend(str(SOURCE / "bench/cases"))
    table = importlib.import_module("search")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet")
    out = tmp_path / "runs.jsonl"
    arguments = ["search", "--programs", "mm64_240_64", "--seconds", "0.3", "--strategies", "random,genetic", "--only",
                 "random,policy", "--data", str(tmp_path / "data.parquet"), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", arguments)
    table.main()
    first = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ways = {line["case"] for line in first}
    assert {"mm64_240_64: random, 0.3 s, seed 1", "mm64_240_64: policy: first schedule, seed 1",
            "mm64_240_64: policy: 10 evaluations, seed 1", "mm64_240_64: policy and cost model: 10 evaluations, seed 1",
            "summary: random, 0.3 s"} <= ways
    assert not any("genetic" in each for each in ways)
    kept = out.read_text()
    assert len(kept.splitlines()) == 5 and all(json.loads(line)["elapsed_ns"] for line in kept.splitlines())
    for line in first:
        if "summary" not in line["case"]:
            assert line["ratio"] == pytest.approx(line["value"] / line["peer_value"])
    out.write_text(kept[:-20])  # as an interruption leaves it
    picture = tmp_path / "curves.svg"
    monkeypatch.setattr(sys, "argv", [*arguments, "--plot", str(picture)])
    table.main()
    assert "random" in picture.read_text() and json.loads(kept.splitlines()[0])["curve"]
    again = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert out.read_text().splitlines()[:4] == kept.splitlines()[:4] and len(out.read_text().splitlines()) == 5
    assert again[:4] == first[:4], "not measured again"
    for wrong, said in ((["--strategies", "genetics"], "nearest: genetic"), (["--programs", "mm64_240_65"], "mm64_240_64")):
        monkeypatch.setattr(sys, "argv", [*arguments[:1], *wrong])
        with pytest.raises(SystemExit):
            table.main()
        assert said in capsys.readouterr().err


def test_no_program_is_both_trained_on_and_judged_by(monkeypatch):
    import importlib

    from loopfleet.rows import program_of
    monkeypatch.syspath_prepend(str(SOURCE / "bench/cases"))
    table = importlib.import_module("search_programs")
    trained, judged = ({program_of(each, None)[0] for each in programs}
                       for programs in (table.TRAINING_PRODUCTS + table.TRAINING_OTHERS,
                                        table.TEST_PRODUCTS + table.TEST_OTHERS))
    assert len(judged) == 25 + 22 and len(trained) == len(table.TRAINING_PRODUCTS + table.TRAINING_OTHERS)
    assert not trained & judged and None not in trained | judged


def test_numpy_is_asked_for_the_same_programs():
    import importlib.util
    spec = importlib.util.spec_from_file_location("numpy_programs", SOURCE / "bench/peers/numpy_programs.py")
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    shapes = {"mm-v0/mm3_5_7": (3, 5), "conv-v0/conv2_3_9_8__4_3_3_2": (2, 4, 7, 7), "program-v0/conv1d20_5": (16,),
              "program-v0/twomm3_4_5_6": (3, 6), "program-v0/mmbias3_4_5": (3, 4), "program-v0/chain3_4": (3, 4),
              "program-v0/reduce_add6_9": (6,), "program-v0/reduce_max6_9": (6,), "program-v0/shift6_9": (6, 9)}
    for name, shape in shapes.items():
        assert peer.operation_of(np, f"benchmark://{name}")[1]().shape == shape, name
    assert peer.operation_of(np, "benchmark://program-v0/positive_product3_4_5") is None
    assert peer.median_ns(lambda: np.ones(1000).sum(), 0.01) > 0


# ---- the page


def test_what_the_page_shows_runs(tmp_path):
    """docs/LEARNING.md: its complete program runs, its commands exist, and no class is unnamed."""
    learning_package("xgboost")
    page = SOURCE / "docs/LEARNING.md"
    (program,) = (block for block in blocks_of(page, "python") if "import loopfleet" in block)
    # On a busy host no figure is trusted; rows of one's own have no such mark, so the program runs there, too.
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4 and (tmp_path / "cost.npz").exists()
    (commands,) = (block for block in blocks_of(page, "sh") if "loopfleet.models evaluate" in block)
    for line in commands.splitlines():
        words = line.split("#")[0].split()
        assert words[:3] == ["python", "-m", "loopfleet.models"]
        assert run_command(*words[3:4], "--help").returncode == 0
    text = page.read_text()
    assert [name for name in models.__all__ if f"{name}" not in text] == []


def test_the_commands_on_a_small_campaign(tmp_path):
    learning_package("xgboost")
    from loopfleet import campaign
    from loopfleet.export import export
    from loopfleet.rows import rows_of_file
    spec = campaign.Spec("small", 240, [MM.format(m, n, 32) for m, n in ((16, 16), (32, 32), (64, 16), (16, 128), (128, 64))],
                         seed=3, actions=list(LOOPTUNE_ACTIONS), max_length=8)
    with loopfleet.LocalCluster(workers=1, database=tmp_path / "results.db"), loopfleet.Client() as client:
        campaign.run(spec, tmp_path / "campaign", client)
    export(rows_of_file(tmp_path / "results.db"), tmp_path / "data")
    # Of five regions not every seed leaves some for each part.
    data = Measured.of(models.read_rows(tmp_path / "data"), use_suspect=True)
    splits = {seed: {Split("region", (0.7, 0.1, 0.2), seed).part_of_key(region) for region in data.region}
              for seed in range(200)}
    whole = next(seed for seed, parts in splits.items() if len(parts) == 3)
    lacking = next(seed for seed, parts in splits.items() if len(parts) < 3)
    done = run_command("evaluate", tmp_path / "data", "--models", "trees", "--suspect", "--seed", whole)
    assert done.returncode == 0 and "trees" in done.stdout, done.stderr
    assert "leave the part" in run_command("evaluate", tmp_path / "data", "--suspect", "--seed", lacking).stderr
    shown = run_command("landscape", tmp_path / "campaign", "--plot", tmp_path / "depth.svg")
    # A program whose untuned schedule has no figure, on a busy host, is left out.
    untuned = {row["benchmark"] for row in rows_of_campaign(tmp_path / "campaign")
               if row["elapsed_ns"] and row["tree_key"] == loopfleet.Walk(benchmark=row["benchmark"]).tree_key.hex()}
    assert shown.returncode == 0 and shown.stdout.count("| mm") == len(untuned) > 0, shown.stderr
    assert "best of 30" in shown.stdout and (tmp_path / "depth.svg").stat().st_size > 1000
