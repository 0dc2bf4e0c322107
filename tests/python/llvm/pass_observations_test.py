"""What LLVM environments observe, on a real cluster: all names and spaces, and what the client makes of other
observations."""

import json
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from loopfleet import _core, compiler_gym
from loopfleet.envs import LlvmEnv, LlvmVectorEnv
from loopfleet.envs.pass_observations import OBSERVATIONS
from loopfleet.programl import FLOWS

SMALL = "benchmark://small-v0/qsort"


@pytest.fixture(scope="module")
def make(client):
    return lambda **options: LlvmEnv(**{"benchmark": SMALL, "client": client, **options})


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_every_observation_is_of_its_space_in_one_environment_and_in_several(make, client, name):
    env = make(observation_space=name)
    for observation in (env.reset()[0], env.step("-mem2reg")[0]):
        assert observation in env.observation_space, (type(observation), env.observation_space)
    vector = LlvmVectorEnv(2, client=client, benchmark=SMALL, observation_space=name)
    for observations in (vector.reset()[0], vector.step([0, 1])[0]):
        assert observations in vector.observation_space, (type(observations), vector.observation_space)
    env.close()
    vector.close()


@pytest.mark.filterwarnings("ignore:.*maximum value is infinity.*")  # that of a count has no meaning
@pytest.mark.parametrize("name", ["InstCount", "InstCountNormDict", "AutophaseDict"])
def test_gymnasiums_own_check(client, name):
    check_env(gym.make("loopfleet/LLVM-v0", benchmark=SMALL, observation_space=name, client=client).unwrapped)


def test_a_graph_is_networkx(make):
    env = make(benchmark="generator://csmith-v0/0", observation_space="Programl")
    graph, _ = env.reset()
    assert graph in env.observation_space
    assert graph.number_of_nodes() > 10_000 and graph.number_of_edges() > 20_000
    text = env.observation["Ir"]
    assert "define" in text and env.observation["Bitcode"].startswith(b"BC")


@pytest.mark.parametrize("name, some", [
    ("InstCount", {"TotalInstsCount": 0, "RetCount": 3, "FreezeCount": 69}),
    ("InstCountNorm", {"TotalBlocksDensity": 0, "RetDensity": 2, "FreezeDensity": 68}),
    ("Autophase", {"BBNumArgsHi": 0, "TotalInsts": 51, "testUnary": 55})])
def test_a_dictionary_has_the_numbers_of_its_array_under_their_names(client, name, some):
    env = compiler_gym.make("llvm-v0", benchmark=SMALL, client=client, observation_space=f"{name}Dict")
    assert f"{name}Dict" in env.observation.spaces
    first = env.reset()
    assert first in env.observation_space and len(first) == len(env.observation[name])
    (array, named), *_ = env.step("-mem2reg", observation_spaces=[name, f"{name}Dict"])
    np.testing.assert_array_equal(list(named.values()), array)
    assert {key: list(named).index(key) for key in some} == some
    assert any(named[key] != first[key] for key in named)
    np.testing.assert_array_equal(list(env.observation[f"{name}Dict"].values()), array)


def test_a_dictionary_costs_no_job_of_its_own(client):
    observed = []

    class Noting:
        def evaluate_many(self, jobs, **named):
            observed.extend(job["observe"] for job in jobs)
            return client.evaluate_many(jobs, **named)

    env = LlvmEnv(SMALL, client=Noting(), observation_space="AutophaseDict")
    env.reset()
    assert env.observation["Autophase"].shape == (56,)
    env.step(0, observation_spaces=["InstCountDict", "InstCount"])
    assert observed == [["Autophase"], ["Autophase", "InstCount"]]


def test_a_vector_has_a_dictionary_of_arrays(client):
    options = {"client": client, "benchmark": SMALL}
    named = LlvmVectorEnv(2, observation_space="AutophaseDict", **options)
    plain = LlvmVectorEnv(2, observation_space="Autophase", **options)
    flags = named.single_action_space
    for ours, theirs in ((named.reset()[0], plain.reset()[0]),
                         *[(each.step([flags["-mem2reg"], flags["-gvn"]])[0] for each in (named, plain))]):
        assert ours in named.observation_space
        columns = [ours[key] for key in _core.pass_number_names("Autophase")]
        np.testing.assert_array_equal(np.stack(columns, axis=1), theirs)


def test_a_file_of_bitcode_lasts_as_long_as_its_episode(make):
    env = make(observation_space="BitcodeFile")
    first = Path(env.reset()[0])
    at_start = env.observation["Bitcode"]
    second = Path(env.step("-mem2reg")[0])
    assert second.suffix == ".bc" and second.read_bytes() == env.observation["Bitcode"] != at_start
    assert first.read_bytes() == at_start and Path(env.observation["BitcodeFile"]) == second
    fork = env.fork()
    third = Path(fork.observation["BitcodeFile"])
    assert third != second and third.read_bytes() == second.read_bytes()
    env.close()
    assert not first.parent.exists() and third.exists()
    env.reset()
    fourth = Path(fork.reset(benchmark=f"file://{third}")[0])  # read before it is removed
    assert fork.benchmark.startswith("bitcode://sha256/") and fourth.exists() and not third.parent.exists()
    env.close()
    assert fourth.exists()
    fork.close()
    assert not fourth.parent.exists()


def test_a_vector_removes_the_files_of_the_episodes_that_are_over(client):
    for mode in ("NextStep", "SameStep"):
        vector = LlvmVectorEnv(2, client=client, benchmark=SMALL, observation_space="BitcodeFile", episode_steps=1,
                               autoreset_mode=mode)
        before = vector.reset()[0]
        info = vector.step([0, 1])[4]
        assert all(Path(path).exists() for path in info.get("final_obs", ()))
        after = vector.step([0, 1])[0]
        assert not any(Path(path).parent.exists() for path in before) and all(Path(path).exists() for path in after)
        vector.close()
        assert not any(Path(path).parent.exists() for path in after)


@pytest.mark.parametrize("name", ["Programl", "ProgramlJson", "ProgramlJsonFullText"])
def test_a_control_edge_has_its_successors_position_or_zero_as_in_compiler_gym(make, name):
    def links(positions):
        env = make(programl_control_positions=positions, observation_space=name)
        graph, _ = env.reset()
        assert graph in env.observation_space
        every = (graph.edges(keys=True, data=True) if name == "Programl" else
                 [(link["source"], link["target"], link["key"], link) for link in json.loads(graph)["links"]])
        return sorted((*ends, FLOWS[link["flow"]], link["position"]) for *ends, link in every)

    index, zero = links("index"), links("zero")
    assert {position for *_, flow, position in index if flow == "control"} > {0}
    assert zero == [(*link, flow, 0 if flow == "control" else position) for *link, flow, position in index]


def test_another_word_for_the_positions_of_control_edges_is_refused(make):
    with pytest.raises(LookupError, match="programl_control_positions 'zeros'; nearest: zero; valid: index, zero"):
        make(programl_control_positions="zeros")
