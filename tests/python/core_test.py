"""The extension module: jobs, walks, messages. Starts no coordinator and no worker."""

import json
import os
import subprocess

import numpy as np
import pytest

import loopfleet
from loopfleet import _core

MM = "benchmark://mm-v0/mm64_64_64"


def test_a_job_line_and_the_short_form_make_the_same_job():
    short = loopfleet.job(MM, ["down", "split_16"])
    assert short == loopfleet.Job(f'{{"benchmark": "{MM}", "actions": ["down", "split_16"]}}')
    assert short == loopfleet.job(MM, "down, split_16")
    assert short != loopfleet.job(MM, ["down"])
    assert short.actions == ["down", "split_16"]


def test_every_field_of_a_job_line_reaches_the_job():
    job = loopfleet.job(MM, ["down"], threads=2, cache="cold", precision=0.02, budget_ms=5, cut_above_ns=7,
                        fresh=True, max_age_s=9, rules="loop_nest", on_illegal="skip", merge_all_first=True,
                        tag={"a": [1]}, device="any", labels=["x"], affinity="y", priority=3, deadline_s=4)
    assert loopfleet.Job(job.line) == job
    for word in ("threads", "cold", "0.02", "cut_above_ns", "fresh", "loop_nest", "skip", "any", '"y"', '{"a":[1]}'):
        assert word in job.line


def test_fields_of_a_job_may_be_numpys_numbers():
    given = loopfleet.job(np.str_(MM), np.array(["down"]), threads=np.int64(2), precision=np.float32(0.25), fresh=np.True_,
                          tag={"seed": np.uint8(7), "row": np.arange(3)})
    assert given == loopfleet.job(MM, ["down"], threads=2, precision=0.25, fresh=True, tag={"seed": 7, "row": [0, 1, 2]})
    with pytest.raises(TypeError, match="a field of a job cannot hold a set: {1}"):
        loopfleet.job(MM, tag={1})
    walk = _core.Walk(benchmark=MM)
    assert walk.job(threads=np.int64(2), precision=np.float32(0.25)) == walk.job(threads=2, precision=0.25)


@pytest.mark.parametrize("rules", ["structural", "loop_nest", "loop_nest_58"])
@pytest.mark.parametrize("features", ["agent20", "agent58"])
def test_a_walks_job_names_the_rules_that_it_was_walked_under(rules, features):
    walk = _core.Walk(benchmark=MM, rules=rules, features=features)
    walk.apply("split_16")
    line = walk.job().line
    assert loopfleet.Job(line) == walk.job()
    effective = "loop_nest_58" if (rules, features) == ("loop_nest", "agent58") else rules
    assert (f'"rules":"{effective}"' in line) == (effective != "structural"), line


@pytest.mark.parametrize("make, code, said, index", [
    (lambda: loopfleet.job(MM, ["down", "splt_4"]), "INVALID_ACTION", "nearest: split_4", 1),
    (lambda: loopfleet.job(MM, ["down"] * 1025), "LIMIT_ACTIONS", "1025 actions", None),
    (lambda: loopfleet.job(MM, [], presision=1), "MALFORMED", "nearest: precision", None),
    (lambda: loopfleet.job(MM, [], threads=0), "MALFORMED", "threads", None),
    (lambda: loopfleet.job(), "MALFORMED", "'benchmark' or 'ir'", None),
])
def test_a_bad_job_names_the_nearest_valid_one(make, code, said, index):
    with pytest.raises(loopfleet.JobError, match=said) as raised:
        make()
    assert (raised.value.code, raised.value.action_index) == (code, index)
    assert isinstance(raised.value, ValueError)


def test_a_walk_steps_copies_and_restarts():
    walk = _core.Walk(benchmark=MM, action_space=["down", "split_16", "merge", "up"])
    start = walk.tree_key
    assert walk.step(0) == 1, "the cursor moved"
    assert walk.step(1) == 2, "the tree changed"
    copy = walk.copy()
    assert copy.tree_key == walk.tree_key != start
    assert walk.history == ["down", "split_16"]
    copy.step(0)
    copy.step(2)
    assert copy.tree_key == start
    assert walk.tree_key != start, "a copy is a value of its own"
    walk.restart()
    assert (walk.tree_key, walk.history) == (start, [])
    assert walk.step(3) == 0, "up is illegal at the top"
    assert walk.history == []
    for outside in (-1, 4):
        with pytest.raises(loopfleet.JobError, match=f"action {outside} is not in the action space, which has 4 actions"):
            walk.step(outside)


def test_masks_are_what_apply_says():
    space = ["up", "down", "swap_up", "swap_down", "split_2", "split_128", "merge"]
    walk = _core.Walk(benchmark=MM, action_space=space)
    for taken in ("down", "split_4", "up"):
        mask = walk.mask()
        assert mask.dtype == np.int8
        assert mask.tolist() == [int(walk.copy().apply(name)) for name in space]
        assert walk.apply(taken)


def test_the_job_of_a_walk_rebuilds_its_tree():
    walk = _core.Walk(benchmark=MM, action_space=["down", "split_16", "swap_up"], rules="loop_nest")
    for action in (0, 1, 2, 2, 2):
        walk.step(action)
    job = walk.job()
    again = _core.Walk(benchmark=job.benchmark, rules="loop_nest")
    assert all(again.apply(name) for name in job.actions)
    assert again.tree_key == walk.tree_key
    assert '"rules":"loop_nest"' in job.line


def test_a_walk_that_starts_elsewhere_is_measured_by_its_text():
    walk = _core.Walk(benchmark=MM, action_space=["split_16"], start_cursor=1)
    walk.step(0)
    job = walk.job()
    assert job.actions == []
    assert _core.Walk(ir=job.benchmark).tree_key == walk.tree_key
    with pytest.raises(loopfleet.JobError, match="start_cursor 99"):
        _core.Walk(benchmark=MM, start_cursor=99)
    with pytest.raises(loopfleet.JobError, match="start_cursor belongs to dialect agent"):
        _core.Walk(benchmark="benchmark://loop_tool-cpu-v0/8", start_cursor=1)


def test_a_walk_starts_where_the_command_starts_it():
    split = _core.Walk(benchmark=MM)
    assert split.apply("split_16")
    start = {"ir": split.observe("ir"), "merge_all_first": True, "start_cursor": 2}
    walk = _core.Walk(**start)
    assert walk.cursor == 2
    assert walk.apply("split_4")
    done = subprocess.run([f"{os.environ['LOOPFLEET_BIN']}/loopfleet", "replay"], text=True, capture_output=True, check=True,
                          input=json.dumps({**start, "actions": ["split_4"]}) + "\n")
    assert json.loads(done.stdout)["tree_key"] == walk.tree_key.hex()
    for merged_first, cursor in ((False, 4), (True, 3)):  # operations of the tree; the one that is split has a loop at 3
        with pytest.raises(loopfleet.JobError, match=f"start_cursor {cursor} is not a loop"):
            _core.Walk(ir=start["ir"], merge_all_first=merged_first, start_cursor=cursor)


def test_a_walk_of_more_actions_than_a_job_has_is_measured_by_its_text():
    walk = _core.Walk(benchmark=MM, action_space=["swap_down", "swap_up"])
    for step in range(_core.MOST_ACTIONS):
        assert walk.step(step % 2) == 2
    assert len(walk.job().actions) == _core.MOST_ACTIONS
    walk.step(0)
    job = walk.job()
    assert job.actions == [] and _core.failure_of(job, replay=True) is None
    assert _core.Walk(ir=job.benchmark).tree_key == walk.tree_key


def test_many_walks_step_as_each_would():
    space = ["up", "down", "swap_down", "split_4", "split_16", "merge", "unroll"]
    rng = np.random.default_rng(1)
    walks = [_core.Walk(benchmark=MM, action_space=space, features="agent58") for _ in range(8)]
    alone = [walk.copy() for walk in walks]
    tensors = np.zeros((8, 20 * 58), np.float32)
    masks = np.zeros((8, len(space)), np.int8)
    for _ in range(30):
        actions = rng.integers(-1, len(space), 8)
        effects = _core.step_many(walks, actions, tensors, masks)
        for i, action in enumerate(actions):
            assert effects[i] == (alone[i].step(int(action)) if action >= 0 else 0)
            np.testing.assert_array_equal(masks[i], alone[i].mask())
            np.testing.assert_array_equal(tensors[i], alone[i].loops_tensor(20))
    with pytest.raises(ValueError, match="row"):
        _core.step_many(walks, np.zeros(8, np.int64), tensors[:, :100].copy(), masks)
    with pytest.raises(loopfleet.JobError, match="action 7"):
        _core.step_many(walks, np.full(8, 7), tensors, masks)


def test_a_page_becomes_columns():
    outcomes = [_core.failed_outcome("INVALID_ACTION", "no such action", 3, i, MM, ["down"]) for i in range(5)]
    number, kind, (info, rows) = _core.decode_reply(_core.encode_page(9, 4, outcomes))
    assert (number, kind, info["batch"], info["state"]) == (9, "outcomes", 4, "finished")
    batch = loopfleet.ResultBatch(rows)
    assert batch.status.tolist() == [loopfleet.FAILURE_NUMBERS["INVALID_ACTION"]] * 5
    assert np.isnan(batch.gflops).all() and not batch.ok.any()
    assert batch.sample_offsets.tolist() == [0] * 6
    assert rows[2].action_index == 3 and rows[2].actions == ["down"] and rows[2].benchmark == MM


def test_hostile_frames_are_refused_with_a_code():
    for frame in (b"", b"x" * 100, os.urandom(4096)):
        with pytest.raises(loopfleet.JobError) as raised:
            _core.decode_reply(frame)
        assert raised.value.code == "MALFORMED"


def test_long_lists_of_jobs_are_cut_into_messages():
    jobs = [loopfleet.job(MM, ["down"], tag="x" * 60_000)] * 30
    fitting = _core.jobs_that_fit(jobs)
    assert 1 <= fitting < 30
    assert len(_core.encode_submit(1, os.urandom(16), 0, jobs[:fitting], True)) <= 1 << 20
    assert 1000 < _core.jobs_that_fit([loopfleet.job(MM)] * 5000) <= _core.MAX_JOBS_PER_MESSAGE


def test_the_address_comes_from_the_argument_then_the_environment_then_the_file(monkeypatch, tmp_path):
    from loopfleet.settings import find_address
    config = tmp_path / "loopfleet.toml"
    config.write_text('[client]\naddress = "tcp://127.0.0.1:3"\n')
    assert find_address() == "tcp://127.0.0.1:5570"
    monkeypatch.setenv("LOOPFLEET_CONFIG", str(config))
    assert find_address() == "tcp://127.0.0.1:3"
    monkeypatch.setenv("LOOPFLEET_ADDRESS", "tcp://127.0.0.1:2")
    assert find_address() == "tcp://127.0.0.1:2"
    assert find_address("tcp://127.0.0.1:1") == "tcp://127.0.0.1:1"
    config.write_text("[client\n")
    monkeypatch.delenv("LOOPFLEET_ADDRESS")
    with pytest.raises(loopfleet.LoopfleetError, match="loopfleet.toml"):
        find_address()


def test_a_benchmark_is_drawn_only_from_what_can_be_counted():
    sizes = {name.removeprefix("benchmark://").rstrip("/"): size for name, _, size, _ in _core.datasets()}
    assert 0 in sizes.values()
    for name, size in sizes.items():
        if size:
            assert _core.random_benchmark([name], 1).startswith(f"benchmark://{name}/")
        else:
            with pytest.raises(loopfleet.JobError, match=f"{name} cannot be counted.*benchmark://{name}/") as caught:
                _core.random_benchmark([name], 1)
            assert caught.value.code == "INVALID_BENCHMARK"
    assert _core.random_benchmark([], 1).startswith("benchmark://")
