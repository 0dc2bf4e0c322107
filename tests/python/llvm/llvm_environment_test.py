"""loopfleet/LLVM-v0 and its variants on a real cluster."""

import copy
import dataclasses
import gc
import math
from types import SimpleNamespace
from weakref import WeakValueDictionary

import gymnasium as gym
import numpy as np
import pytest

import loopfleet
from bitcode_files import bitcode_of
from loopfleet import _core, compiler_gym, envs
from loopfleet.compiler_gym.datasets import Benchmark
from loopfleet.envs import walk_env

SMALL = "benchmark://small-v0/qsort"


@pytest.fixture(scope="module")
def make(client):
    def make(id="loopfleet/LLVM-v0", **options):
        return gym.make(id, **{"benchmark": SMALL, "client": client, **options})
    return make


def test_an_episode_as_the_documents_show(make):
    env = make("loopfleet/LLVM-autophase-ic-v0")
    observation, info = env.reset()
    assert observation.shape == (56,) and observation in env.observation_space and info["passes"] == 0
    unwrapped = env.unwrapped
    total = 0.0
    for flag in ("-mem2reg", "-gvn", "-simplifycfg"):
        observation, reward, terminated, truncated, info = env.step(env.action_space[flag])
        assert observation in env.observation_space and not terminated and not truncated
        total += reward
    count = unwrapped.observation["IrInstructionCount"]
    start = unwrapped._episode.start["IrInstructionCount"]
    least = unwrapped.observation["IrInstructionCountOz"]
    assert total == pytest.approx((start - count) / max(start - least, 1)) and total > 0.5
    assert unwrapped.observation["Autophase"] is not observation
    np.testing.assert_array_equal(unwrapped.observation["Autophase"], observation)
    assert unwrapped.commandline().startswith("opt-19 -passes='function(mem2reg)")
    assert unwrapped.state.commandline == "-mem2reg,-gvn,-simplifycfg"
    result = unwrapped.validate()
    assert result.okay() and result.reward_validated and result.benchmark_semantics_validated


def test_a_short_name_is_the_program_that_it_is_short_for(make):
    env = make("loopfleet/LLVM-autophase-ic-v0", benchmark="small-v0/qsort").unwrapped
    assert env.benchmark == SMALL
    env.reset()
    env.step(env.action_space["-mem2reg"])
    assert env.state.benchmark == SMALL
    for state in (env.state, dataclasses.replace(env.state, benchmark="small-v0/qsort")):
        assert env.validate(state).benchmark_semantics_validated


def test_actions_are_those_of_compiler_gym(make):
    names = make().action_space.names
    assert len(names) == 124 and names[0] == "-add-discriminators"
    assert make(action_space="Passes19").action_space.n == 118
    assert make(action_space="PassesPipelines").action_space.names[-1] == "-Oz"
    with pytest.raises(LookupError, match="nearest: PassesAll"):
        make(action_space="PasesAll")


def test_every_reward_is_what_it_says(make):
    env = make(reward_space="IrInstructionCount").unwrapped
    env.reset()
    start = int(env.observation["IrInstructionCount"])
    size = int(env.observation["ObjectTextSizeBytes"])
    flag = env.action_space["-mem2reg"]
    _, rewards, *_ = env.step(flag, reward_spaces=list(envs.PASS_REWARDS))
    by_name = dict(zip(envs.PASS_REWARDS, rewards))
    count = int(env.observation["IrInstructionCount"])
    assert by_name["IrInstructionCount"] == start - count > 0
    assert by_name["IrInstructionCountNorm"] == pytest.approx((start - count) / start)
    assert by_name["IrInstructionCountLog"] == pytest.approx(math.log(start / count))
    o3 = int(env.observation["IrInstructionCountO3"])
    assert by_name["IrInstructionCountO3"] == pytest.approx((start - count) / max(start - o3, 1))
    assert by_name["ObjectTextSizeBytes"] == size - int(env.observation["ObjectTextSizeBytes"])
    assert env.reward["IrInstructionCount"] == 0  # since it was last read
    _, second, *_ = env.step(env.action_space["-simplifycfg"])
    _, (third, norm), *_ = env.step(env.action_space["-instcombine"], reward_spaces=["IrInstructionCount",
                                                                                    "IrInstructionCountNorm"])
    now = int(env.observation["IrInstructionCount"])
    assert second > 0 and third == count - second - now > 0, "the second step earned its part"
    assert norm == pytest.approx((count - now) / start), "no step earned this one"


def test_a_fork_goes_its_own_way(make):
    env = make(reward_space="IrInstructionCountOz").unwrapped
    env.reset()
    env.step(env.action_space["-mem2reg"])
    other = env.fork()
    _, mine, *_ = env.step(env.action_space["-gvn"])
    assert other.state.commandline == "-mem2reg" and other.state != env.state
    _, others, *_ = other.step(other.action_space["-gvn"])
    assert mine == others and env.state.commandline == "-mem2reg,-gvn"
    third = make(reward_space="IrInstructionCountOz").unwrapped
    third.apply(env.state)
    assert third.observation["IrInstructionCount"] == env.observation["IrInstructionCount"]


def test_a_state_whose_passes_fail_is_not_applied(make, client):
    state = envs.EnvState("generator://llvm-stress-v0/1", "-dce,-scalarizer", 0.0)
    for env in (make().unwrapped, compiler_gym.make("llvm-v0", client=client)):
        with pytest.raises(ValueError, match="terminated with error: COMPILE_ERROR: PASS_CRASHED"):
            env.apply(state)


def test_a_program_that_cannot_be_had_leaves_the_one_before(make):
    env = make(benchmark=SMALL).unwrapped
    env.reset()
    for wrong in ("benchmark://small-v0/qsrt", "benchmark://small-v0/qsorted"):
        with pytest.raises(envs.PassError, match="small-v0 has no program"):
            env.reset(options={"benchmark": wrong})
        assert env.benchmark == SMALL
        env.reset()
        env.benchmark = wrong
        with pytest.raises(envs.PassError, match="small-v0 has no program"):
            env.reset()
        env.reset()
        assert env.benchmark == SMALL
    env.benchmark = "benchmark://small-v0/bitcount"
    with pytest.raises(envs.PassError, match="small-v0 has no program"):
        env.reset(benchmark="benchmark://small-v0/qsrt")
    assert env.reset()[1]["benchmark"] == "benchmark://small-v0/bitcount", "what was set is not forgotten"
    env = make(benchmarks=["benchmark://small-v0/bitcount"]).unwrapped
    env.benchmark = SMALL
    assert len(make(action_space=["-gvn"] * 1025).action_space.names) == 1025
    assert env.reset()[1]["benchmark"] == SMALL and env.reset()[1]["benchmark"] == "benchmark://small-v0/bitcount"


def test_an_outage_leaves_the_program_before():
    class Broken:
        def evaluate_many(self, jobs, timeout):
            raise loopfleet.DeadlineExceeded("late")

    env = envs.LlvmEnv(SMALL, client=Broken())
    with pytest.raises(loopfleet.DeadlineExceeded):
        env.reset(benchmark="benchmark://small-v0/bitcount")
    assert env.benchmark == SMALL


def test_a_vector_whose_reset_fails_keeps_its_programs(client):
    vector = envs.LlvmVectorEnv(3, client=client, benchmark=SMALL)
    other = "benchmark://small-v0/bitcount"
    with pytest.raises(envs.PassError, match="small-v0 has no program"):
        vector.reset(options={"benchmark": [other, "benchmark://small-v0/qsrt", other]})
    assert vector.reset()[1]["benchmark"].tolist() == [SMALL] * 3


def test_a_pass_that_crashes_ends_the_episode(make):
    env = make(benchmark="generator://llvm-stress-v0/1", reward_space="IrInstructionCount").unwrapped
    env.reset()
    _, first, *_ = env.step(env.action_space["-dce"])
    _, reward, terminated, truncated, info = env.step(env.action_space["-scalarizer"])
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["error_type"] == "COMPILE_ERROR" and "PASS_CRASHED" in info["error_details"]
    env.default_negates_returns = True
    env.reset()
    env.step(env.action_space["-dce"])
    _, reward, terminated, *_ = env.step(env.action_space["-scalarizer"])
    assert terminated and reward == -first and env.episode_reward == 0
    # Its state is the one before that pass, which can be had again.
    state = env.state
    assert (state.commandline, state.reward) == ("-dce", first) and first != 0
    result = env.validate(semantics=False)
    assert result.okay() and result.reward_validated and result.errors == ()


def test_bad_input_names_the_nearest(make):
    with pytest.raises(ValueError, match="episode_steps must be at least 1"):
        make(episode_steps=-1)
    with pytest.raises(ValueError, match="episode_steps must be at most 1024, the passes of one job, not 1025"):
        make(episode_steps=_core.MOST_PASSES + 1)
    with pytest.raises(TypeError, match="an address is address="):
        envs.LlvmEnv(client="tcp://127.0.0.1:5570")
    with pytest.raises(LookupError, match="nearest: Autophase"):
        make(observation_space="Autofase")
    with pytest.raises(LookupError, match="nearest: IrInstructionCountOz"):
        make(reward_space="IrInstructionContOz")
    with pytest.raises(envs.PassError, match="nearest: generator://csmith-v0"):
        make(benchmark="generator://csmiht-v0/1").reset()
    with pytest.raises(TypeError, match="timeout must be a number, not None"):
        make(timeout=None)
    with pytest.raises(ValueError, match="timeout must be more than 0, not -1"):
        make(timeout=-1)
    with pytest.raises(LookupError, match="action_space: unknown pass '-foo'"):
        make(action_space=["-gvn", "-foo"])
    with pytest.raises(ValueError, match="action_space has no actions"):
        make(action_space=[])
    with pytest.raises(TypeError, match="benchmark must be a text, not 5"):
        make().reset(options={"benchmark": 5})
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        make().unwrapped.step(0)
    with pytest.raises(LookupError, match="0 to 123"):
        env = make()
        env.reset()
        env.unwrapped.step(124)
    env = env.unwrapped
    with pytest.raises(TypeError, match="whole number, not 0.5"):
        env.step(0.5)
    with pytest.raises(LookupError, match="unknown action .-mem2rg.*nearest: -mem2reg"):
        env.step("-mem2rg")
    assert env.actions == []
    env.step("-mem2reg")
    env.step(["-gvn", env.action_space["-dce"]])
    assert env.state.commandline == "-mem2reg,-gvn,-dce"


def test_programs_are_drawn_from_a_list_or_from_a_data_set_of_any_size(make):
    programs = make().unwrapped.datasets
    for benchmarks in (programs["generator://csmith-v0"], programs["small-v0"],
                       (f"generator://csmith-v0/{i}" for i in range(9))):
        env = make(benchmarks=benchmarks).unwrapped
        drawn = []
        for seed in (4, None, 4, None):
            env.reset(seed=seed)
            drawn.append(str(env.benchmark))
        assert drawn[:2] == drawn[2:] and drawn[0] != drawn[1], drawn
    for env_class in (envs.LlvmEnv, envs.LoopTuneEnv, envs.LoopToolEnv):
        with pytest.raises(ValueError, match="benchmarks is empty"):
            env_class(benchmarks=[])
        with pytest.raises(TypeError, match=f"not the text '{SMALL}'.*benchmark="):
            env_class(benchmarks=SMALL)
    env = envs.LoopTuneEnv(benchmarks=programs["small-v0"], reward_space=None)
    with pytest.raises(LookupError, match="is a program for LLVM passes"):
        env.reset()


def test_a_vector_steps_as_its_environments_do(client):
    options = {"observation_space": "InstCount", "reward_space": "IrInstructionCountOz", "client": client,
               "action_space": "Passes19", "episode_steps": 3}
    vector = gym.make_vec("loopfleet/LLVM-v0", num_envs=3, vectorization_mode="vector_entry_point", **options)
    benchmarks = [SMALL, "benchmark://small-v0/bitcount", SMALL]
    observations, _ = vector.reset(seed=1, options={"benchmark": benchmarks})
    assert observations.shape == (3, 70)
    single = [gym.make("loopfleet/LLVM-v0", **options) for _ in benchmarks]
    for env, benchmark in zip(single, benchmarks):
        env.reset(options={"benchmark": benchmark})
    random = np.random.default_rng(4)
    for step in range(3):
        actions = random.integers(0, 118, 3)
        observations, rewards, terminated, truncated, infos = vector.step(actions)
        for place, env in enumerate(single):
            observation, reward, ended, cut, info = env.step(int(actions[place]))
            np.testing.assert_array_equal(observation, observations[place])
            assert (reward, ended, cut) == (rewards[place], terminated[place], truncated[place])
            for key, value in info.items():
                np.testing.assert_array_equal(value, infos[key][place])
                assert infos[f"_{key}"][place]
        assert infos["action_had_no_effect"].dtype == bool
    assert truncated.all()
    observations, rewards, *_, infos = vector.step(actions)  # begins again
    assert not infos.get("_action_had_no_effect", np.zeros(3)).any() and (infos["passes"] == 0).all()
    assert (rewards == 0).all() and observations[0][0] == single[0].unwrapped._episode.start["InstCount"][0]


def test_without_a_client_one_is_made_and_kept(cluster, monkeypatch):
    made = []

    class Counted(loopfleet.Client):
        def __init__(self, *given):
            made.append(given)
            super().__init__(*given)

    monkeypatch.setattr(walk_env, "Client", Counted)
    monkeypatch.setattr(walk_env, "_clients", WeakValueDictionary())
    env = envs.LlvmEnv(SMALL, address=cluster.address)
    vector = envs.LlvmVectorEnv(1, benchmark=SMALL, address=cluster.address)
    assert made == []
    env.reset()
    env.step(0)
    env.fork().step(1)
    vector.reset()
    vector.step([2])
    assert made == [(cluster.address,)], "not one for each job"
    env.close()
    vector.close()
    gc.collect()
    assert not walk_env._clients, "closed, they leave none behind"


class Outages:
    """A client on which the jobs at some places of the next batches fail as an outage does."""

    def __init__(self, client):
        self.client, self.places = client, []

    def evaluate_many(self, jobs, **named):
        outcomes = list(self.client.evaluate_many(jobs, **named))
        for place in self.places.pop(0) if self.places else ():
            outcomes[place] = _core.failed_outcome("EXPIRED", "as in an outage")
        return SimpleNamespace(outcomes=outcomes)


def test_a_vectors_step_that_raises_moves_no_environment(client):
    broken = Outages(client)
    options = {"reward_space": "IrInstructionCount", "observation_space": "IrInstructionCount", "benchmark": SMALL}
    vector = envs.LlvmVectorEnv(2, client=broken, episode_steps=2, **options)
    untroubled = envs.LlvmVectorEnv(2, client=client, episode_steps=2, **options)
    vector.reset()
    untroubled.reset()
    flags = vector.single_action_space
    for actions, failing in (([flags["-mem2reg"], flags["-sroa"]], (1,)), ([flags["-gvn"], flags["-dce"]], (1,)),
                             ([0, 0], (0,)), ([flags["-sroa"], flags["-dce"]], (0,))):
        broken.places = [failing]
        with pytest.raises(envs.PassError, match="EXPIRED"):
            vector.step(actions)
        for got, expected in zip(vector.step(actions)[:4], untroubled.step(actions)[:4]):
            np.testing.assert_array_equal(got, expected)


def test_a_vector_that_begins_again_in_vain_loses_no_step_of_the_others(client):
    broken = Outages(client)
    options = {"reward_space": "IrInstructionCount", "benchmark": SMALL}
    vector = envs.LlvmVectorEnv(2, client=broken, **options)
    vector.reset(options={"benchmark": ["generator://llvm-stress-v0/1", SMALL]})
    flags = vector.single_action_space
    vector.step([flags["-dce"], flags["-dce"]])
    _, _, terminated, *_ = vector.step([flags["-scalarizer"], flags["-dce"]])
    assert terminated.tolist() == [True, False]
    broken.places = [(1,)]  # those that begin again come last
    with pytest.raises(envs.PassError, match="EXPIRED"):
        vector.step([0, flags["-mem2reg"]])
    _, rewards, *_ = vector.step([0, flags["-mem2reg"]])
    assert rewards[0] == 0 and rewards[1] > 0
    assert vector.envs[1].state.commandline == "-dce,-dce,-mem2reg"


def test_an_episode_ends_at_the_passes_that_a_job_may_have(client):
    env = gym.make("loopfleet/LLVM-v0", benchmark=SMALL, client=client).unwrapped
    env.reset()
    idle = env.action_space["-instnamer"]
    assert not env.step([idle] * (_core.MOST_PASSES - 1))[3]
    assert env.step(idle)[3], "the next step would be refused"


def test_each_environment_of_a_vector_has_what_can_be_read_once(client):
    once = {"benchmarks": iter([SMALL]), "action_space": iter(["-gvn", "-dce"])}
    vector = envs.LlvmVectorEnv(3, client=client, **once)
    assert vector.reset()[1]["benchmark"].tolist() == [SMALL] * 3
    assert [env.action_space.names for env in vector.envs] == [["-gvn", "-dce"]] * 3


def test_a_vector_says_what_its_reset_takes(client):
    vector = envs.LlvmVectorEnv(2, benchmark=SMALL, observation_space="InstCount", client=client)
    with pytest.raises(LookupError, match="observation_space"):
        vector.reset(options={"observation_space": "Autophase"})


def test_an_episode_begins_again_in_the_step_that_ends_it_where_that_is_asked_for(client):
    broken = Outages(client)
    options = {"observation_space": "InstCount", "reward_space": "IrInstructionCount", "episode_steps": 2}
    vector = envs.LlvmVectorEnv(2, client=broken, autoreset_mode="SameStep", **options)
    other = envs.LlvmVectorEnv(2, client=client, **options)
    programs = {"benchmark": ["generator://llvm-stress-v0/1", SMALL]}
    start = vector.reset(options=programs)[0]
    other.reset(options=programs)
    flags = vector.single_action_space
    for failing, actions in (([], ["-dce", "-mem2reg"]), ([(), (1,)], ["-scalarizer", "-gvn"]),
                             ([], ["-dce", "-mem2reg"])):
        actions = [flags[flag] for flag in actions]
        broken.places = failing
        if failing:
            with pytest.raises(envs.PassError, match="EXPIRED"):
                vector.step(actions)
        observations, *ours, info = vector.step(actions)
        seen, *theirs, _ = other.step(actions)
        np.testing.assert_array_equal(ours, theirs)
        if not ours[1].any():
            np.testing.assert_array_equal(observations, seen)
            continue
        assert ours[1].tolist() == [True, False] and ours[2].tolist() == [False, True]
        np.testing.assert_array_equal(observations, start)
        np.testing.assert_array_equal(np.stack(info["final_obs"]), seen)
        assert info["error_type"].tolist() == ["COMPILE_ERROR", None] and "PASS_CRASHED" in info["error_details"][0]
        assert info["final_info"]["action_mask"].shape == info["action_mask"].shape == (2, 124)
        other.step(actions)  # begins again
    with pytest.raises(ValueError, match="NextStep or SameStep, not Disabled"):
        envs.LlvmVectorEnv(2, client=client, autoreset_mode="Disabled")


def test_a_vector_takes_a_seed_for_each_and_an_action_for_each(client):
    vector = envs.LlvmVectorEnv(2, client=client, benchmarks=[f"generator://csmith-v0/{i}" for i in range(50)])

    def drawn(seed):
        vector.reset(seed=seed)
        return [str(env.benchmark) for env in vector.envs]

    assert drawn(3) == drawn([3, 4]) == drawn(np.int64(3)) != drawn([4, 3])
    with pytest.raises(ValueError, match="3 seeds for 2 environments"):
        vector.reset(seed=[1, 2, 3])
    for actions in ([0], [0, 0, 0]):
        with pytest.raises(ValueError, match=f"{len(actions)} actions? for 2 environments"):
            vector.step(actions)


@pytest.mark.parametrize("id", ["loopfleet/LLVM-v0", "llvm-ic-v0"])
def test_without_an_observation_it_is_none_and_of_the_space(make, client, id):
    env = make(id)
    observation, _ = env.reset()
    assert observation is None and observation in env.observation_space
    observation, *_ = env.step(0)
    assert observation is None and 0 not in env.observation_space and env.observation_space.sample() is None
    env.unwrapped.observation_space = "InstCount"
    assert env.unwrapped.reset()[0] in env.unwrapped.observation_space
    vector = gym.make_vec(id, num_envs=2, vectorization_mode="vector_entry_point", benchmark=SMALL, client=client)
    observations, _ = vector.reset()
    assert observations == (None, None) and observations in vector.observation_space


def test_compiler_gyms_environment_has_no_space_without_an_observation(client):
    env = compiler_gym.make("llvm-ic-v0", benchmark=SMALL, client=client)
    assert env.reset() is None and env.observation_space is None
    env.observation_space = "Autophase"
    assert env.reset() in env.observation_space


def test_loops_and_programs_have_environments_of_their_own(client):
    env = gym.make("loopfleet/LoopTune-v0", client=client)
    with pytest.raises(LookupError, match="small-v0/qsort is a program for LLVM passes, not loops: use loopfleet/LLVM-v0"):
        env.reset(options={"benchmark": SMALL})
    env = gym.make("loopfleet/LLVM-v0", client=client)
    with pytest.raises(LookupError, match="mm64_64_64 is no program for LLVM passes.*loops are for loopfleet/LoopTune-v0"):
        env.reset(options={"benchmark": "benchmark://mm-v0/mm64_64_64"})
    with pytest.raises(LookupError, match="nearest: benchmark://small-v0"):
        env.reset(options={"benchmark": "benchmark://smal-v0/qsort"})


@pytest.fixture(scope="module")
def square(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "a square.bc"
    path.write_bytes(bitcode_of("int square_of(int x) { int y = x; return y * y; }"))
    return path


def test_bitcode_in_a_file_is_a_benchmark_as_in_compiler_gym(client, square):
    benchmark = Benchmark.from_file("benchmark://mine-v0/square", square)
    assert benchmark.uri == "benchmark://mine-v0/square" and benchmark.startswith("bitcode://sha256/")
    assert Benchmark.from_file_contents("benchmark://mine-v0/other", square.read_bytes()) == benchmark
    copied = copy.deepcopy(benchmark)
    assert (copied, copied.bitcode, copied.uri) == (benchmark, benchmark.bitcode, benchmark.uri)
    env = compiler_gym.make("llvm-v0", benchmark=benchmark, reward_space="IrInstructionCount", client=client)
    env.reset()
    small = env.observation["IrInstructionCount"]
    assert small < 20 and small - env.step(env.action_space["-mem2reg"])[1] == 2
    env.benchmark = SMALL
    assert env.benchmark.uri == benchmark.uri, "the episode goes on"
    env.step(env.action_space["-dce"])
    state = env.state
    env.reset()
    assert env.benchmark == SMALL and env.observation["IrInstructionCount"] > 20
    env.benchmark = benchmark
    env.reset()
    assert env.observation["IrInstructionCount"] == small
    env.reset(benchmark=f"file://{str(square).replace(' ', '%20')}")
    assert env.state.benchmark == benchmark and env.observation["IrInstructionCount"] == small
    env.apply(state)
    assert env.observation["IrInstructionCount"] == 2
    vector = gym.make_vec("loopfleet/LLVM-v0", num_envs=2, vectorization_mode="vector_entry_point",
                          observation_space="IrInstructionCount", client=client)
    observations, _ = vector.reset(options={"benchmark": [benchmark, SMALL]})
    assert observations[0] == small < observations[1]


def test_each_reset_makes_sure_that_the_coordinator_has_the_program(client, square, monkeypatch):
    sent = []
    add = client.add_program
    monkeypatch.setattr(client, "add_program", lambda *given, **named: sent.append(given) or add(*given, **named))
    env = gym.make("loopfleet/LLVM-v0", benchmark=Benchmark.from_file("mine://square", square), client=client)
    assert sent == []
    env.reset()
    env.step(0)
    env.reset()
    env.reset(options={"benchmark": SMALL})
    assert sent == [(square.read_bytes(),)] * 2


def test_a_file_without_bitcode_is_no_benchmark(client, tmp_path):
    text = tmp_path / "text.bc"
    text.write_text("define void @f()")
    with pytest.raises(ValueError, match="no LLVM bitcode"):
        Benchmark.from_file("benchmark://mine-v0/text", text)
    with pytest.raises(ValueError, match="'square' is no URI; such as benchmark://mine-v0/square"):
        Benchmark.from_file_contents("square", b"BC\xc0\xde")
    with pytest.raises(FileNotFoundError):
        Benchmark.from_file("benchmark://mine-v0/none", tmp_path / "none.bc")
    with pytest.raises(LookupError, match="is a program for LLVM passes"):
        gym.make("loopfleet/LoopTune-v0", client=client).reset(
            options={"benchmark": Benchmark.from_file_contents("benchmark://mine-v0/x", b"BC\xc0\xde")})


def test_masks_leave_out_what_would_change_nothing(make):
    env = make(benchmark=SMALL).unwrapped
    _, info = env.reset()
    names = env.action_space.names
    idle = {name for name, may in zip(names, env.action_masks()) if not may}
    assert len(names) - len(idle) == 118
    assert info["action_mask"].dtype == np.int8 and info["action_mask"].sum() == 118
    assert env.action_space.sample(info["action_mask"]) in env.action_space
    *_, info = env.step(env.action_space["-mem2reg"])
    assert not info["action_had_no_effect"] and info["action_mask"].sum() == 118
    *_, info = env.step(env.action_space["-mem2reg"])
    assert info["action_had_no_effect"] and not info["action_mask"][env.action_space["-mem2reg"]]
    assert info["action_mask"].sum() == 117
    *_, info = env.step(env.action_space["-simplifycfg"])
    assert info["action_mask"].sum() == 118, "another state"
    pipelines = make(benchmark=SMALL, action_space=["-mem2reg"]).unwrapped
    pipelines.reset()
    pipelines.step(0)
    *_, info = pipelines.step(0)
    assert list(info["action_mask"]) == [1], "never none"
    # -die runs -dce's pass: it is needed where there is no -dce.
    for actions, expected in ((["-die", "-gvn", "-barrier"], [1, 1, 0]), (["-die", "-dce"], [0, 1]),
                              (["function(dce)", "-die"], [1, 0])):
        _, info = make(benchmark=SMALL, action_space=actions).reset()
        assert list(info["action_mask"]) == expected, actions


def test_a_program_that_the_baseline_does_not_make_smaller_is_marked(client, make):
    least = client.add_program(bitcode_of("int one(void) { return 1; }"))
    env = make(benchmark=least, reward_space="IrInstructionCountOz").unwrapped
    _, info = env.reset()
    assert info["baseline_degenerate"] is True and env.baseline_degenerate is True
    _, info = env.reset(benchmark=SMALL)
    assert info["baseline_degenerate"] is False
    env = make(benchmark=least, reward_space="IrInstructionCount").unwrapped
    _, info = env.reset()
    assert "baseline_degenerate" not in info and env.baseline_degenerate is None
    vector = gym.make_vec("loopfleet/LLVM-v0", num_envs=2, vectorization_mode="vector_entry_point", client=client,
                          reward_space="IrInstructionCountOz")
    _, info = vector.reset(options={"benchmark": [least, SMALL]})
    assert list(info["baseline_degenerate"]) == [True, False]
    assert (info["action_mask"] == vector.unwrapped.action_masks()).all()
    *_, info = vector.step([0, 0])
    assert info["action_mask"].shape == (2, 124) and list(info["baseline_degenerate"]) == [True, False]
