"""The adapters with the real packages: Stable-Baselines3's check and its PPO, torch's loader. make_environment.sh
installs them; if it cannot, these tests are skipped with its reason."""

import gymnasium as gym
import pytest
from learning_packages import learning_package

import loopfleet
from loopfleet.envs import LlvmEnv, LoopToolEnv, LoopTuneEnv
from loopfleet.export import export
from loopfleet.rows import row_of

MM = "benchmark://mm-v0/mm32_32_32"
VECTOR = "benchmark://loop_tool-cpu-v0/1024"


@pytest.fixture
def ppo():
    return learning_package("stable_baselines3").PPO


@pytest.mark.parametrize("env_class", [LoopToolEnv, LoopTuneEnv])
def test_stable_baselines3s_own_check(env_class, client):
    checker = learning_package("stable_baselines3.common.env_checker")
    checker.check_env(env_class(reward_space=None, client=client))


@pytest.mark.parametrize("env_class, options", [
    (LoopToolEnv, {"benchmark": VECTOR, "episode_steps": 20, "reward_space": "log_speedup"}),
    (LoopTuneEnv, {"benchmark": MM, "action_space": "looptune", "reward_space": "log_speedup"}),
    (LlvmEnv, {"benchmark": "benchmark://small-v0/qsort", "episode_steps": 20, "observation_space": "InstCountNorm",
               "reward_space": "IrInstructionCountLog"})])
def test_its_ppo_trains_on_many_at_once(ppo, env_class, options, client):
    from loopfleet.sb3 import Sb3VecEnv
    envs = Sb3VecEnv(8, env_class=env_class, client=client, **options)
    model = ppo("MlpPolicy", envs, n_steps=16, batch_size=64, n_epochs=2, seed=1, device="cpu")
    model.learn(256)
    assert model.num_timesteps == 256
    assert [len(mask) for mask in envs.env_method("action_masks")] == [envs.action_space.n] * 8
    # What it logs as rollout/ep_rew_mean and ep_len_mean.
    episodes = list(model.ep_info_buffer)
    assert episodes and all(1 <= each["l"] <= 20 and abs(each["r"]) < 100 for each in episodes)


def test_it_takes_arrays_alone():
    learning_package("stable_baselines3")
    from loopfleet.sb3 import Sb3VecEnv
    with pytest.raises(ValueError, match="leave out tensors="):
        Sb3VecEnv(2, tensors="torch")


def test_its_options_are_those_of_the_next_reset():
    learning_package("stable_baselines3")
    from loopfleet.sb3 import Sb3VecEnv
    envs = Sb3VecEnv(2, env_class=LoopTuneEnv, benchmark=MM, reward_space=None)
    plain = envs.reset()
    assert [info["action_mask"].tolist() for info in envs.reset_infos] == [
        mask.tolist() for mask in envs.env_method("action_masks")]
    large, elsewhere = "benchmark://mm-v0/mm64_64_64", {"start_cursor": 1}
    envs.set_options({"benchmark": large})
    both = envs.reset()
    assert (both[0] == both[1]).all() and (both != plain).any()
    envs.set_options([{"benchmark": MM}, elsewhere])
    mixed = envs.reset()
    assert (mixed[0] == plain[0]).all() and (mixed[1] != both[1]).any()
    assert (envs.reset() == mixed).all()  # they stay, as those of an environment do, and are not given again
    envs.set_options({"benchmrk": large})
    with pytest.raises(LookupError, match="nearest: benchmark"):
        envs.reset()
    envs.set_options([elsewhere])
    with pytest.raises(ValueError, match="1 start_cursor for 2 environments"):
        envs.reset()


def test_its_ppo_takes_the_name_of_an_environment(ppo, cluster):
    model = ppo("MlpPolicy", "loopfleet/LoopTune-v0", n_steps=16, batch_size=16, n_epochs=1, seed=1, device="cpu")
    model.learn(16)
    assert model.num_timesteps == 16


@pytest.mark.parametrize("name, options", [
    ("loop_tool-v0", {"benchmark": VECTOR, "episode_steps": 20}),
    ("loopfleet/LoopTune-v0", {"benchmark": MM, "action_space": "looptune"})])
def test_its_ppo_trains_on_gym_make(ppo, name, options, client):
    env = gym.make(name, client=client, **options)
    model = ppo("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=2, seed=1, device="cpu")
    model.learn(64)
    assert model.num_timesteps == 64


def test_observations_are_torchs_where_that_is_asked_for():
    torch = learning_package("torch")
    env = LoopTuneEnv(MM, reward_space=None, tensors="torch")
    env.reset()
    plain = LoopTuneEnv(MM, reward_space=None)
    plain.reset()
    for name in ("loops_tensor", "stride_tensor", "5_prev_actions_tensor"):
        assert isinstance(env.observation[name], torch.Tensor), name
        assert (env.observation[name].numpy() == plain.observation[name]).all(), name


def test_torch_loads_an_export(client, tmp_path):
    torch = learning_package("torch")
    from loopfleet.torch_data import ScheduleDataset
    jobs = [(f"benchmark://mm-v0/mm{m}_16_16", ["down"] * down + ["split_4"]) for m in range(8, 40) for down in range(3)]
    export([row_of(outcome) for outcome in client.evaluate_many(jobs)], tmp_path / "data")
    train = ScheduleDataset(tmp_path / "data", "train")
    batch = next(iter(torch.utils.data.DataLoader(train, batch_size=16)))
    assert batch["loops"].shape == (16, 20, 58) and batch["mask"].sum() > 16 * 3
    rows = [row_of(outcome) for outcome in client.evaluate_many(jobs)]
    export([{**row, "suspect": "drift"} for row in rows], tmp_path / "doubted")
    assert len(ScheduleDataset(tmp_path / "doubted", "train")) == 0
    assert (batch["loops"][~batch["mask"]] == 0).all() and (batch["gflops"] > 0).all()
    strange = [{**row, "tree_key": f"{number:032x}"} for number, row in enumerate(rows)]
    export(rows + strange, tmp_path / "strange")
    with pytest.warns(UserWarning, match=f"{len(train)} of {2 * len(train)} rows left out"):
        rest = ScheduleDataset(tmp_path / "strange", "train")
    assert len(rest) == rest.left_out == len(train) and train.left_out == 0


@pytest.mark.parametrize("rules", ["structural", "loop_nest", "loop_nest_58"])
def test_a_row_is_rebuilt_whatever_rules_it_was_walked_under(rules):
    learning_package("torch")
    from loopfleet.rows import rebuild
    conv = "benchmark://conv-v0/conv1_4_16_16__8_4_3_3"
    actions = ["down", "split_5", "swap_down", "unroll", "swap_up", "split_4", "split_2"]  # differs by rule set
    keys = {}
    for name in ("structural", "loop_nest", "loop_nest_58"):
        walk = loopfleet.Walk(benchmark=conv, rules=name)
        for action in actions:
            walk.apply(action)
        keys[name] = walk.tree_key
    assert keys["loop_nest"] not in (keys["structural"], keys["loop_nest_58"])
    for features in ("agent20", "agent58"):
        found = rebuild({"benchmark": conv, "ir": None, "actions": actions, "tree_key": keys[rules].hex()}, features)
        assert found.tree_key == keys[rules] and found.loops_tensor(20).size == 20 * int(features[-2:])
