"""Gymnasium's contract and CompilerGym's names, against a real cluster."""

import io
import itertools
import json
import math
import os
import random
import signal
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from learning_packages import learning_package

import loopfleet
from loopfleet.envs import EnvState, LoopToolEnv, LoopTuneEnv, read_states, write_states
from loopfleet.envs.program_datasets import ProgramDatasets

MM = "benchmark://mm-v0/mm32_32_32"
IDS = ("loopfleet/LoopTool-v0", "loop_tool-v0", "loopfleet/LoopTune-v0")


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_own_check(name, client):
    with warnings.catch_warnings():
        # A size has no meaningful upper bound.
        warnings.filterwarnings("ignore", message=".*maximum value is infinity.*")
        check_env(gym.make(name, client=client), skip_render_check=False)
        check_env(gym.make(name, reward_space=None, mask_in_observation=True))


@pytest.mark.parametrize("name", IDS)
def test_make_gives_the_environment_itself(name):
    env = gym.make(name, reward_space=None)
    assert env is env.unwrapped and env.spec.nondeterministic
    env.reset(seed=1)
    assert env.action_space.sample(mask=env.observation and env.walk.mask()) in env.action_space


def test_an_episode_ends_where_nothing_is_legal_any_more():
    env = LoopTuneEnv(MM, reward_space=None, action_space=["split_16"])
    _, info = env.reset()
    assert info["action_mask"].tolist() == [1]
    _, _, terminated, truncated, info = env.step(0)  # 32 becomes 2 x 16
    assert (terminated, truncated, info["action_mask"].tolist()) == (True, False, [0])


def test_arguments_that_no_step_could_use_are_refused_at_once():
    for wrong, error, said in (({"threads": 0}, ValueError, "'threads' is 0; from 1 to 1024"),
                               ({"precision": -1.0}, ValueError, "'precision' is -1"),
                               ({"episode_steps": 0}, ValueError, "episode_steps must be at least 1, not 0"),
                               ({"max_loops": 0}, ValueError, "max_loops must be at least 1, not 0"),
                               ({"client": "tcp://127.0.0.1:5570"}, TypeError, "an address is address=")):
        with pytest.raises(error, match=said):
            LoopTuneEnv(MM, **wrong)


class NoNetwork:
    def submit_job(self, job):
        raise AssertionError("a step without a reward space touched the network")


def test_without_a_reward_space_nothing_is_measured():
    env = LoopTuneEnv(MM, reward_space=None, client=NoNetwork())
    env.reset(seed=1)
    for _ in range(5):
        env.step(env.action_space.sample())
    env.fork().multistep(["down", "split_4"])
    with pytest.raises(AssertionError, match="touched the network"):
        env.observation["flops"]


def test_both_spellings_of_reset_and_errors_that_name_the_nearest():
    env = LoopTuneEnv(reward_space=None)
    env.reset(benchmark=MM)
    assert env.benchmark == MM and env.benchmark.uri == MM
    env.reset(options={"benchmark": "benchmark://mm-v0/mm8_8_8"})
    assert env.benchmark == "benchmark://mm-v0/mm8_8_8"
    env.reset()
    assert env.benchmark == "benchmark://mm-v0/mm8_8_8", "the last one"
    env.benchmark = MM
    assert env.benchmark == "benchmark://mm-v0/mm8_8_8", "of this episode"
    with pytest.raises(loopfleet.JobError, match="mm"):
        env.benchmark = "benchmark://mm-v0/mmm8_8_8"
    assert env.reset()[1]["benchmark"] == env.benchmark == MM
    env.reset(benchmark="benchmark://mm-v0/mm8_8_8")
    with pytest.raises(loopfleet.JobError, match="mm"):
        env.reset(benchmark="benchmark://mm-v0/mmm8_8_8")
    assert env.benchmark == "benchmark://mm-v0/mm8_8_8", "a refused reset changes nothing"
    for call, said in ((lambda: env.reset(options={"benchmrk": MM}), "nearest: benchmark"),
                       (lambda: env.action_space["splt_4"], "nearest: split_4"),
                       (lambda: LoopTuneEnv(reward_space="gflop"), "nearest: gflops"),
                       (lambda: LoopTuneEnv(observation_space="loop_tensor"), "nearest: loops_tensor"),
                       (lambda: LoopTuneEnv(action_space="looptoool"), "nearest: looptool"),
                       (lambda: LoopTuneEnv("benchmark://loop_tool-cpu-v0/8"), "LoopTool-v0")):
        with pytest.raises(LookupError, match=said):
            call()
    with pytest.raises(ValueError, match="99"):
        env.step(99)
    with pytest.raises(gym.error.ResetNeeded):
        LoopTuneEnv().step(0)


def test_wrong_arguments_name_the_nearest():
    with pytest.raises(TypeError, match="unknown argument 'rewrd_space'; nearest: reward_space"):
        LoopTuneEnv(rewrd_space=None)
    with pytest.raises(TypeError, match="unknown argument 'max_loop'; nearest: max_loops"):
        gym.make("loop_tool-v0", max_loop=3)
    with pytest.raises(LookupError, match="unknown features 'agent'; nearest: agent20; valid: agent20, agent58"):
        LoopTuneEnv(features="agent")
    for wrong, error, said in (({"timeout": 0}, ValueError, "timeout must be more than 0, not 0"),
                               ({"timeout": math.nan}, ValueError, "timeout must be more than 0, not nan"),
                               ({"timeout": "x"}, TypeError, "timeout must be a number, not 'x'"),
                               ({"peak_gflops": -5}, ValueError, "peak_gflops must be at least 0, not -5"),
                               ({"max_loops": 10**9}, ValueError, "max_loops must be at most 256, not 1000000000"),
                               ({"action_space": []}, ValueError, "action_space has no actions"),
                               ({"reward_space": 3}, TypeError, "reward space must be a name, not 3; valid: gflops"),
                               ({"fresh": "yes"}, TypeError, "fresh must be True or False, not 'yes'")):
        with pytest.raises(error, match=said):
            LoopTuneEnv(**wrong)
    env = LoopTuneEnv(MM, reward_space=None)
    with pytest.raises(TypeError, match="start_cursor is a whole number, not 1.5"):
        env.reset(options={"start_cursor": 1.5})
    env.reset()
    with pytest.raises(ValueError, match="timeout must be more than 0, not 0"):
        env.reset(benchmark="benchmark://mm-v0/mm8_8_8", timeout=0)
    assert env.benchmark == MM and env.in_episode
    with pytest.raises(ValueError, match="timeout must be more than 0, not -1"):
        env.step(0, timeout=-1)
    with pytest.raises(ValueError, match="start_cursor must be at least 0, not -1"):
        env.reset(options={"start_cursor": -1})
    with pytest.raises(TypeError, match="merge_all_first must be True or False, not 'x'"):
        env.reset(options={"merge_all_first": "x"})
    with pytest.raises(TypeError, match="unknown render_mode 'rgb_array'; valid: ansi"):
        LoopTuneEnv(render_mode="rgb_array")  # Stable-Baselines3 goes on without it


def test_a_benchmark_needs_no_scheme():
    env = LoopTuneEnv("mm-v0/mm4_8_8", reward_space=None)
    assert env.reset() and str(env.benchmark) == "benchmark://mm-v0/mm4_8_8"
    assert env.reset(benchmark="mm-v0/mm8_8_8") and str(env.benchmark) == "benchmark://mm-v0/mm8_8_8"
    assert str(env.datasets.benchmark("conv_train-v0/conv1_32_56_56__32_32_3_3")).startswith("benchmark://conv_train")
    assert loopfleet.job("mm-v0/mm8_8_8", "down split_4, up").actions == ["down", "split_4", "up"]
    assert loopfleet.job("mm-v0/mm8_8_8").benchmark == "benchmark://mm-v0/mm8_8_8"
    with pytest.raises(loopfleet.JobError, match="nearest: "):
        env.reset(benchmark="mmm-v0/mm8_8_8")


def test_what_compilergyms_programs_also_call():
    env = LoopToolEnv(reward_space=None)
    env.reset()
    env.step(["toggle_mode", "up", 0])
    assert env.commandline() == "toggle_mode,up,toggle_mode" and env.version == loopfleet.__version__
    env.observation_space = None
    assert env.reset()[0] is None and env.step("up")[0] is None and env.observation_space is None
    env.observation_space = "action_state"
    assert env.reset()[0].shape == (3,)


def test_a_figure_that_is_not_there_is_no_silent_nan(client):
    env = LoopToolEnv(reward_space=None, client=client)
    env.reset()
    env.step(["toggle_thread"] * 1025)
    with pytest.warns(RuntimeWarning, match="observation 'flops' has no figure: LIMIT_ACTIONS: "):
        assert np.isnan(env.observation["flops"])


@pytest.mark.parametrize("call, error", [
    ({"action_space": ["up", "splt_4"]}, loopfleet.JobError),
    ({"action_space": ["up", "down"], "benchmark": "benchmark://mm-v0/mmm8_8_8"}, loopfleet.JobError),
    ({"reward_space": None, "observation_space": "loop_tensor"}, LookupError),
    ({"reward_space": "gflop", "timeout": 7}, LookupError),
    ({"options": {"start_cursor": 99, "merge_all_first": True}, "observation_space": "loop_tree"}, loopfleet.JobError),
    ({"options": {"start_cursor": 1, "benchmark": "benchmark://loop_tool-cpu-v0/8"}}, LookupError),
    ({"action_space": ["up"], "reward_space": "log_speedup", "timeout": 7}, loopfleet.ClientClosed),
])
def test_a_refused_reset_changes_nothing(call, error):
    class Closed:
        def submit_job(self, job):
            raise loopfleet.ClientClosed("the client is closed")

    env = LoopTuneEnv(MM, reward_space=None, client=Closed(), observation_space="5_prev_actions_tensor")
    env.reset()
    env.step("split_4")

    def shown():
        return (env.benchmark, env.action_space, env.observation_space, env.reward_space, env.timeout, env.actions,
                env.walk.tree_key, env.walk.cursor)

    before = shown()
    with pytest.raises(error):
        env.reset(**call)
    assert shown() == before
    env.step("split_2")
    observation, _ = env.reset()
    assert (env.benchmark, env.actions) == (MM, []) and observation in env.observation_space
    assert env.step("down")[0] in env.observation_space


def test_the_observation_space_follows_the_actions():
    env = LoopTuneEnv(MM, reward_space=None, observation_space="5_prev_actions_tensor", mask_in_observation=True)
    observation, _ = env.reset(action_space=["up", "down", "split_4"])
    assert env.observation_space["obs"].shape == (15,) and env.observation_space["action_mask"].shape == (3,)
    assert observation in env.observation_space


def test_rewards_are_differences_of_what_is_measured(client):
    env = LoopTuneEnv(MM, client=client, episode_steps=None)
    env.reset()
    start = env.observation["gflops"]
    assert start > 0
    _, reward, terminated, truncated, info = env.step("down")
    assert (reward, terminated, truncated) == (0, False, False), "only the cursor moved"
    assert not info["action_had_no_effect"]
    _, reward, *_ = env.step("split_4")
    assert reward == pytest.approx(env.observation["flops"] - start)
    assert env.episode_reward == pytest.approx(reward)
    assert env.observation["runtime"] == pytest.approx(2 * 32**3 / env.observation["gflops"] * 1e-9)
    _, (by_name, log), *_ = env.step("split_2", reward_spaces=["gflops", "log_speedup"])
    assert by_name == pytest.approx(env.episode_reward - reward), "of this step: the last one earned the rest"
    assert log == pytest.approx(math.log(env.observation["gflops"] / start)), "from the start, as it was never read"
    assert env.reward["gflops"] == 0, "nothing since it was last read"
    (tree, flops), *_ = env.step("up", observation_spaces=["loop_tree", "flops"])
    assert "cursor" in tree and flops > 0
    normalized = LoopTuneEnv(MM, client=client, reward_space="gflops_normalized", episode_steps=None)
    normalized.reset()
    before = normalized.observation["gflops"]
    _, reward, *_ = normalized.multistep(["down", "split_4"])
    expected = (normalized.observation["gflops"] - before) / normalized.outcome.peak_gflops
    assert reward == pytest.approx(expected)


def test_fork_apply_state_and_validate(client):
    env = LoopTuneEnv(MM, client=client, episode_steps=None)
    env.reset()
    env.multistep(["down", "split_4", "swap_up"])
    other = env.fork()
    tree = env.observation["loop_tree"]
    other.step("split_2")
    assert env.observation["loop_tree"] == tree != other.observation["loop_tree"]
    assert other.actions == [*env.actions, env.action_space["split_2"]]
    state = env.state
    assert (state.benchmark, state.commandline) == (MM, "down,split_4,swap_up")
    assert state.reward == env.episode_reward and state == env.fork().state != other.state
    again = LoopTuneEnv(reward_space=None, episode_steps=None)
    again.apply(state)
    assert again.observation["tree_key"] == env.observation["tree_key"]
    file = io.StringIO()
    write_states(file, [state])
    assert file.getvalue().splitlines()[0] == "benchmark,reward,walltime,commandline"
    file.seek(0)
    assert list(read_states(file)) == [state]
    for options in ({}, {"start_cursor": 2}, {"merge_all_first": True}):
        env.reset(options={"start_cursor": 0, "merge_all_first": False, **options})
        env.multistep(["split_4", "swap_down"])
        state = env.state
        file = io.StringIO()
        write_states(file, [state])
        file.seek(0)
        assert list(read_states(file)) == [state]
        again.apply(state)
        assert again.walk.tree_key == env.walk.tree_key, "a state says where it began"
        again.reset(options={"start_cursor": 1, "merge_all_first": False})
        again.apply(state)
        assert again.walk.tree_key == env.walk.tree_key, "and it is gone to from anywhere"
    env.reset(options={"start_cursor": 0, "merge_all_first": False})
    env.multistep(["down", "split_4", "swap_up"])
    result = env.validate(tolerance=1e9)  # another test checks the agreement of measurements
    assert result.okay() and result.benchmark_semantics_validated and result.reward_validated
    wrong = env.validate(EnvState(MM, "down,split_4,swap_up", 0, reward=1e12), tolerance=0.1)
    assert not wrong.okay() and wrong.reward_validation_failed
    broken = env.validate(EnvState(MM, "down,splt_4", 0, None))
    assert not broken.okay() and broken.actions_replay_failed and "split_4" in broken.errors[0]


def test_validate_measures_the_state_itself_and_both_ends_by_one_worker(good):
    answers = Answers(good, good)
    env = LoopTuneEnv(MM, reward_space=None, client=answers)
    env.reset(options={"start_cursor": 2, "merge_all_first": True})
    env.multistep(["split_4", "swap_down"])
    key = env.walk.tree_key
    env.validate()
    before, after = answers.jobs
    measured = loopfleet.Walk(**{name: value for name, value in json.loads(after.line).items() if name == "ir"})
    assert measured.tree_key == key
    affinities = [json.loads(job.line)["affinity"] for job in (before, after)]
    assert affinities[0] == affinities[1] != ""


class Answers:
    """A client with given outcomes."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.jobs = []

    def submit_job(self, job):
        from concurrent.futures import Future
        self.jobs.append(job)
        future = Future()
        future.set_result(self.outcomes.pop(0))
        return future


class Silent:
    """A client with given outcomes, and no others."""

    def __init__(self, *outcomes):
        self.answers = Answers(*outcomes)

    def submit_job(self, job):
        from concurrent.futures import Future
        return self.answers.submit_job(job) if self.answers.outcomes else Future()


@pytest.fixture(scope="module")
def good(client):
    return client.evaluate(MM)


def failed(code):
    from loopfleet import _core
    return _core.failed_outcome(code, f"as if {code}")


class GradeD:
    """An outcome, as if of grade D."""

    grade = "D"

    def __init__(self, outcome):
        self._outcome = outcome

    def __getattr__(self, name):
        return getattr(self._outcome, name)


@pytest.mark.parametrize("outcomes", [["RUN_CRASH"], ["NO_MATCHING_WORKER", "NO_MATCHING_WORKER"]])
def test_what_cannot_be_measured_is_not_validated(good, outcomes):
    env = LoopTuneEnv(MM, reward_space=None, client=Answers(*[good] * (2 - len(outcomes)), *map(failed, outcomes)))
    env.reset()
    env.step("split_4")
    result = env.validate()
    assert not result.okay() and result.actions_replay_failed and not result.benchmark_semantics_validated
    assert result.errors == tuple(f"{code}: as if {code}" for code in outcomes)


def test_no_reward_is_validated_by_a_figure_of_grade_d(good):
    for outcomes in ([good, GradeD(good)], [GradeD(good), good]):
        env = LoopTuneEnv(MM, client=Answers(good, *outcomes))
        env.reset()
        result = env.validate(EnvState(MM, "split_4", 0, reward=1e12))
        assert result.okay() and result.benchmark_semantics_validated and not result.reward_validated


def test_a_wrong_output_is_no_failed_replay(good):
    env = LoopTuneEnv(MM, reward_space=None, client=Answers(good, failed("WRONG_OUTPUT")))
    env.reset()
    result = env.validate()
    assert not result.okay() and result.benchmark_semantics_validation_failed and not result.actions_replay_failed


def test_a_reward_space_that_is_set_in_an_episode_counts_from_there(good, client):
    trees = {"start": good, "split": client.evaluate(MM, ["split_4"]), "twice": client.evaluate(MM, ["split_4", "split_2"])}
    env = LoopTuneEnv(MM, reward_space=None, client=Answers(*trees.values()), episode_steps=None)
    env.reset()
    env.reward_space = "gflops"
    _, reward, *_ = env.step("split_4")
    assert reward == pytest.approx(trees["split"].gflops - good.gflops)
    env.reward_space = "log_speedup"
    assert env.episode_reward == 0
    _, reward, *_ = env.step("split_2")
    assert reward == pytest.approx(np.log(trees["split"].elapsed_ns / trees["twice"].elapsed_ns))
    assert env.episode_reward == reward
    env.reward_space = None
    assert env.step("up")[1] == 0 and env.episode_reward is None
    # Gains made without a reward space are never part of a later reward.
    env = LoopTuneEnv(MM, reward_space="gflops", client=Answers(*trees.values()), episode_steps=None)
    env.reset()
    env.reward_space = None
    env.step("split_4")
    env.reward_space = "gflops"
    _, reward, *_ = env.step("split_2")
    assert reward == pytest.approx(trees["twice"].gflops - trees["split"].gflops)
    with pytest.raises(LookupError):
        env.reward_space = "gflop"
    assert env.reward_space == "gflops"


def test_a_schedules_own_failure_takes_back_what_was_earned(good, client):
    other = client.evaluate(MM, ["split_4"])
    env = LoopTuneEnv(MM, client=Answers(good, other, failed("RUN_TIMEOUT")), episode_steps=None)
    env.reset()
    _, earned, *_ = env.step("split_4")
    _, reward, terminated, truncated, info = env.step("split_2")
    assert (reward, terminated, truncated) == (-earned, True, False)
    assert (info["error_type"], info["error_details"]) == ("RUN_TIMEOUT", "as if RUN_TIMEOUT")
    assert env.episode_reward == 0


@pytest.mark.parametrize("code", ["CANCELLED", "STORAGE_CORRUPT", "VERSION_MISMATCH", "LIMIT_ACTIONS"])
def test_a_failure_that_is_not_the_schedules_takes_nothing_back(good, client, code):
    other = client.evaluate(MM, ["split_4"])
    env = LoopTuneEnv(MM, client=Answers(good, other, failed(code)), episode_steps=None)
    env.reset()
    _, earned, *_ = env.step("split_4")
    _, reward, terminated, truncated, info = env.step("split_2")
    assert (reward, terminated, truncated, info["error_type"]) == (0, False, True, code)
    assert env.episode_reward == earned


def test_a_long_episode_is_measured_to_its_end(good):
    class Good:
        def submit_job(self, job):
            wrong = loopfleet._core.failure_of(job, replay=True)
            return Answers(failed(wrong[0]) if wrong else good).submit_job(job)

    env = LoopTuneEnv(MM, client=Good(), episode_steps=None, action_space=["swap_down", "swap_up"])
    env.reset()
    *_, info = env.multistep(["swap_down", "swap_up"] * 512)
    assert "error_type" not in info
    _, reward, terminated, truncated, info = env.step("swap_down")
    assert (reward, terminated, truncated, len(env.walk.history)) == (0, False, False, 1025), info


def test_an_episode_of_dialect_simple_ends_at_the_actions_that_a_job_may_have(good):
    for options in ({}, {"episode_steps": 2000}):
        env = LoopToolEnv(client=Answers(good), **options)
        env.reset()
        assert [env.step("toggle_mode")[3] for _ in range(1024)] == [False] * 1023 + [True]
    env = LoopToolEnv(client=Answers(good), episode_steps=1)
    env.reset()
    assert env.step("toggle_mode")[3]
    env = LoopToolEnv(reward_space=None)  # takes no jobs
    env.reset()
    assert not any(env.step("toggle_mode")[3] for _ in range(1100))


def test_a_failure_that_is_nobodys_fault_has_other_turns_and_then_cuts_short(good):
    answers = Answers(good, failed("UNSTABLE_TIMING"), failed("UNSTABLE_TIMING"), good)
    env = LoopTuneEnv(MM, client=answers, episode_steps=None)
    env.reset()
    _, reward, terminated, truncated, info = env.step("split_4")
    assert (reward, terminated, truncated) == (0, False, False) and "error_type" not in info
    assert len({job.line for job in answers.jobs[1:]}) == 1, "the same question again"
    env = LoopTuneEnv(MM, client=Answers(good, *[failed("WORKER_LOST")] * 3), episode_steps=None)
    env.reset()
    _, reward, terminated, truncated, info = env.step("split_4")
    assert (reward, terminated, truncated, info["error_type"]) == (0, False, True, "WORKER_LOST")


def test_a_reward_is_never_of_a_figure_of_grade_d(good, client):
    other, doubtful = client.evaluate(MM, ["split_4"]), GradeD(good)
    for outcomes in ([good, doubtful, other], [doubtful, other, good]):  # the step's, or the start's
        answers = Answers(*outcomes)
        env = LoopTuneEnv(MM, client=answers)
        env.reset()
        _, reward, terminated, truncated, info = env.step("split_4")
        assert (terminated, truncated) == (False, False) and "error_type" not in info
        assert reward == pytest.approx(other.gflops - good.gflops) and len(answers.jobs) == 3
    env = LoopTuneEnv(MM, client=Answers(good, *[doubtful] * 3))
    env.reset()
    _, (reward,), terminated, truncated, info = env.step("split_4", reward_spaces=["gflops"])
    assert math.isnan(reward)
    assert (terminated, truncated, info["error_type"]) == (False, True, "UNSTABLE_TIMING")
    env = LoopTuneEnv(MM, client=Answers(doubtful, other, doubtful, doubtful))
    env.reset()
    _, reward, terminated, truncated, info = env.step("split_4")
    assert (reward, terminated, truncated, info["error_type"]) == (0, False, True, "UNSTABLE_TIMING")


def test_a_peak_is_that_of_all_threads(good, client):
    other = client.evaluate(MM, ["split_4"])
    for given, peak in ((0.0, 4 * other.peak_gflops), (50.0, 50.0)):
        env = LoopTuneEnv(MM, client=Answers(good, other), reward_space="gflops_normalized", threads=4, peak_gflops=given)
        env.reset()
        _, reward, *_ = env.step("split_4")
        assert reward == pytest.approx((other.gflops - good.gflops) / peak)
        env.reward_space = None
        assert LoopTuneEnv._value(env, "gflops_normalized", good, other) == pytest.approx(reward)


def test_a_missing_figure_is_the_worst_observation(good):
    for name, worst in (("runtime", math.inf), ("gflops", 0.0)):
        env = LoopTuneEnv(MM, client=Answers(good, failed("RUN_TIMEOUT")), observation_space=name)
        assert env.reset()[0] > 0
        with pytest.warns(RuntimeWarning, match=f"observation '{name}' has no figure: RUN_TIMEOUT"):
            observation, _, terminated, _, _ = env.step("split_4")
        assert observation == worst and observation in env.observation_space and terminated
        for reward_space in ("gflops", None):
            env = LoopTuneEnv(MM, client=Silent(good), observation_space=name, timeout=0.01, reward_space=reward_space)
            env.reset()
            with pytest.warns(RuntimeWarning, match="has no figure: EXPIRED"):
                observation, _, terminated, truncated, info = env.step("split_4")
            assert (observation, terminated, truncated, info["error_type"]) == (worst, False, True, "EXPIRED")
            with pytest.raises(loopfleet.DeadlineExceeded):
                env.observation[name]
            env = LoopTuneEnv(MM, client=Silent(), observation_space=name, reward_space=reward_space)
            with pytest.raises(loopfleet.DeadlineExceeded, match="0.01 s"):
                env.reset(timeout=0.01)
            assert not env.in_episode and env.timeout == 300


@pytest.mark.parametrize("outcomes, error, terminated", [
    (["CANCELLED"], "CANCELLED", False), (["WORKER_LOST"] * 3, "WORKER_LOST", False),
    (["UNSTABLE_TIMING"] * 3, "UNSTABLE_TIMING", False), ([None] * 3, "UNSTABLE_TIMING", False),
    (["RUN_TIMEOUT"], "RUN_TIMEOUT", True)])
def test_an_observation_without_a_figure_ends_the_episode_without_a_reward_rule_too(good, outcomes, error, terminated):
    answers = Answers(good, *[failed(code) if code else GradeD(good) for code in outcomes])
    env = LoopTuneEnv(MM, client=answers, observation_space="runtime", reward_space=None)
    env.reset()
    assert "error_type" not in env.step("down")[4]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        _, reward, *over, info = env.step("split_4")
    assert (reward, *over, info["error_type"]) == (0, terminated, not terminated, error) and not answers.outcomes


def test_observations_are_tensors_of_torch_if_wanted(good):
    torch = learning_package("torch")
    for env in (LoopToolEnv(reward_space=None, tensors="torch"), LoopTuneEnv(reward_space=None, tensors="torch"),
                LoopTuneEnv(client=Answers(good), observation_space="runtime", tensors="torch")):
        observation, _ = env.reset()
        assert isinstance(observation, torch.Tensor) and observation.shape == env.observation_space.shape


def test_a_closed_environment_keeps_the_client_that_it_was_given(good):
    answers = Answers(good, good)
    env = LoopTuneEnv(MM, client=answers)
    for _ in range(2):
        env.reset()
        env.close()
    assert len(answers.jobs) == 2


def test_no_figure_in_time_cuts_short():
    env = LoopTuneEnv(MM, client=Silent(), timeout=0.01)
    env.reset()
    _, reward, terminated, truncated, info = env.step("split_4")
    assert (reward, terminated, truncated, info["error_type"]) == (0, False, True, "EXPIRED")


def test_an_unreachable_coordinator_is_a_typed_error():
    with loopfleet.Client("tcp://127.0.0.1:1", connect_limit=0.2) as nobody:
        env = LoopTuneEnv(MM, client=nobody)
        env.reset()
        with pytest.raises(loopfleet.CoordinatorUnavailable):
            env.step("split_4")


def test_training_goes_on_when_a_worker_is_killed_and_ends_with_the_coordinator():
    with loopfleet.LocalCluster(workers=2) as cluster:
        client = cluster.client(silence_limit=8.0)
        env = LoopTuneEnv(MM, client=client, episode_steps=None)
        os.kill(client.workers()[0]["pid"], signal.SIGKILL)
        for _ in range(20):  # a busy host may give no figure
            env.reset()
            _, reward, terminated, truncated, info = env.step("split_4")
            assert math.isfinite(reward) and not terminated
            if "error_type" not in info:
                break
        assert "error_type" not in info
        os.kill(cluster.coordinator_pid, signal.SIGKILL)
        with pytest.raises(loopfleet.CoordinatorUnavailable):
            env.step("split_2")


def test_an_episode_has_an_end_and_seeds_choose_benchmarks():
    many = [f"benchmark://mm-v0/mm8_8_{k}" for k in range(1, 100)]
    env = LoopTuneEnv(benchmarks=many, reward_space=None)
    for _ in range(2):
        env.reset(seed=3)
        ends = [env.step("down")[3] for _ in range(10)]
        assert ends == [False] * 9 + [True]
    env.reset(seed=3)
    first = env.benchmark
    env.reset()
    second = env.benchmark
    env.reset(seed=3)
    assert env.benchmark == first and first in many and second in many
    drawn = {str(env.reset()[1] and env.benchmark) for _ in range(20)}
    assert len(drawn) > 5


def test_a_fork_draws_what_its_original_would_and_takes_no_draw_from_it():
    many = [f"benchmark://mm-v0/mm8_8_{k}" for k in range(1, 100)]

    def drawn(forks):
        env = LoopTuneEnv(benchmarks=many, reward_space=None)
        env.reset(seed=3)
        seen = []
        for _ in range(3):
            if forks:
                fork = env.fork()
                fork.reset()
            env.reset()
            seen.append(str(env.benchmark))
            assert not forks or fork.benchmark == env.benchmark
        return seen

    assert drawn(forks=True) == drawn(forks=False)


def test_an_action_is_a_whole_number_or_a_name():
    env = LoopTuneEnv(MM, reward_space=None)
    env.reset()
    for action in (1, np.int64(1), np.array(1), np.array([1]), np.uint8(1), "down"):
        env.step(action)
    assert [env.action_space.names[action] for action in env.actions[-2:]] == [env.action_space.names[1], "down"]
    before = env.actions
    for action in (1.7, np.float32(0.2), np.array([0.9]), math.nan, None, np.array([1, 2])):
        with pytest.raises(TypeError, match="an action is a whole number, not "):
            env.step(action)
    assert env.actions == before


def test_datasets_by_compilergyms_names():
    env = LoopTuneEnv(reward_space=None)
    sizes = {dataset.name: dataset.size for dataset in env.datasets}
    assert sizes["benchmark://mm64_256_16_range-v0"] == 2197
    dataset = env.datasets["benchmark://mm64_256_16_range-v0"]
    uris = list(dataset.benchmark_uris())
    assert len(set(uris)) == 2197 and str(dataset.random_benchmark()) in uris
    env.reset(benchmark=dataset.random_benchmark())
    tool = LoopToolEnv(reward_space=None)
    assert not any("cuda" in tool.datasets.random_benchmark() for _ in range(50)), "not for GPUs, unless one asks"
    assert "cuda" in tool.datasets["loop_tool-cuda-v0"].random_benchmark()
    assert str(env.datasets.benchmark(uri="benchmark://mm-v0/mm4_4_4")) == "benchmark://mm-v0/mm4_4_4"
    for drawn in (dataset, env.datasets, ProgramDatasets(), *ProgramDatasets()):
        for kind in (np.random.default_rng, random.Random):
            first, again, other = (drawn.random_benchmark(kind(seed)) for seed in (1, 1, 2))
            assert first == again and "://" in first
            assert other != first or drawn.size < 50
    firsts = list(itertools.islice(ProgramDatasets().benchmarks(), 100))
    assert [uri.rpartition("/")[0] for uri in firsts[:4]] == [each.name for each in ProgramDatasets()]
    assert len(set(firsts)) == 100
    with pytest.raises(LookupError, match="nearest: benchmark://mm64_256_16_range-v0"):
        env.datasets["mm64_256_16_rang-v0"]
    assert [d.name for d in LoopToolEnv(reward_space=None).datasets] == [
        "benchmark://loop_tool-cpu-v0", "benchmark://loop_tool-cuda-v0"]
