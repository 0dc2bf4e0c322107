"""The two environments."""

from __future__ import annotations

from ..actions import LOOPTOOL_ACTIONS, LOOPTUNE_ACTIONS, SIMPLE_ACTIONS, SPLIT_ACTIONS
from .walk_env import WalkEnv


class LoopToolEnv(WalkEnv):
    """CompilerGym's loop_tool environment: three loops over a point-wise addition, dialect simple.

    Action spaces ``simple`` (toggle_mode, up, down, toggle_thread) and ``split`` (the same, and
    ``split``, which does nothing); observation ``action_state``, int64[3]: cursor, size, tail.
    """

    dialect = "simple"
    default_benchmark = "benchmark://loop_tool-cpu-v0/1024"
    default_observation = "action_state"
    action_sets = {"simple": SIMPLE_ACTIONS, "split": SPLIT_ACTIONS}
    default_actions = "simple"


class LoopTuneEnv(WalkEnv):
    """The LoopTool RL environment: any program, dialect agent.

    Action spaces ``looptool`` (as documented by LoopTool) and ``looptune`` (the seven used to
    train LoopTune), or any list of names; observation ``loops_tensor``, float32[max_loops *
    width].
    """

    dialect = "agent"
    default_benchmark = "benchmark://mm64_256_16_range-v0/mm64_64_64"
    default_observation = "loops_tensor"
    action_sets = {"looptool": LOOPTOOL_ACTIONS, "looptune": LOOPTUNE_ACTIONS}
    default_actions = "looptool"

    def __init__(self, benchmark: str | None = None, *, episode_steps: int | None = 10, **options):
        super().__init__(benchmark, episode_steps=episode_steps, **options)
