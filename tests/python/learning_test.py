"""The adapters with the real packages: Stable-Baselines3's check and its PPO, torch's loader. They are large, so
`tests/python/make_environment.sh --learning` installs them, and without that these tests are skipped."""

import gymnasium as gym
import pytest

from loopfleet.envs import LoopToolEnv, LoopTuneEnv
from loopfleet.export import export
from loopfleet.rows import row_of

MM = "benchmark://mm-v0/mm32_32_32"
WHERE = "tests/python/make_environment.sh --learning installs it"


@pytest.fixture
def ppo():
    return pytest.importorskip("stable_baselines3", reason=WHERE).PPO


@pytest.mark.parametrize("env_class", [LoopToolEnv, LoopTuneEnv])
def test_stable_baselines3s_own_check(env_class, client):
    checker = pytest.importorskip("stable_baselines3.common.env_checker", reason=WHERE)
    checker.check_env(env_class(reward_space=None, client=client))


def test_its_ppo_trains_on_many_at_once(ppo, client):
    from loopfleet.sb3 import Sb3VecEnv
    envs = Sb3VecEnv(8, env_class=LoopTuneEnv, client=client, benchmark=MM, action_space="looptune",
                     reward_space="log_speedup")
    model = ppo("MlpPolicy", envs, n_steps=16, batch_size=64, n_epochs=2, seed=1, device="cpu")
    model.learn(256)
    assert model.num_timesteps == 256
    assert [len(mask) for mask in envs.env_method("action_masks")] == [7] * 8


def test_its_ppo_trains_on_gym_make(ppo, client):
    env = gym.make("loopfleet/LoopTune-v0", client=client, benchmark=MM, action_space="looptune")
    model = ppo("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=2, seed=1, device="cpu")
    model.learn(64)
    assert model.num_timesteps == 64


def test_torch_loads_an_export(client, tmp_path):
    torch = pytest.importorskip("torch", reason=WHERE)
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
