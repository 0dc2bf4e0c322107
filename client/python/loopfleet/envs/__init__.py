"""Gymnasium environments: loopfleet/LoopTool-v0 (and loop_tool-v0), loopfleet/LoopTune-v0, and
loopfleet/LLVM-v0 with its variants (also llvm-v0, llvm-ic-v0, ...)."""

import gymnasium as gym

from ..actions import LOOPTOOL_ACTIONS, LOOPTUNE_ACTIONS, SIMPLE_ACTIONS, SPLIT_ACTIONS
from .datasets import Benchmark, Dataset, Datasets
from .environments import LoopToolEnv, LoopTuneEnv
from .llvm_env import LLVM_ENVIRONMENTS, PASS_REWARDS, LlvmEnv, LlvmVectorEnv, PassError
from .rewards import REWARDS
from .spaces import NamedDiscrete
from .state import EnvState, ValidationResult, read_states, write_states
from .vector_env import WalkVectorEnv
from .walk_env import WalkEnv

__all__ = ["Benchmark", "Dataset", "Datasets", "EnvState", "LOOPTOOL_ACTIONS", "LLVM_ENVIRONMENTS", "LOOPTUNE_ACTIONS", "LlvmEnv", "LlvmVectorEnv", "LoopToolEnv",
           "LoopTuneEnv", "NamedDiscrete", "PASS_REWARDS", "PassError", "REWARDS", "SIMPLE_ACTIONS", "SPLIT_ACTIONS", "ValidationResult",
           "WalkEnv", "WalkVectorEnv", "read_states", "register", "write_states"]


def make_loop_tool_vector(num_envs: int = 1, **options) -> WalkVectorEnv:
    return WalkVectorEnv(num_envs, env_class=LoopToolEnv, **options)


def make_loop_tune_vector(num_envs: int = 1, **options) -> WalkVectorEnv:
    return WalkVectorEnv(num_envs, env_class=LoopTuneEnv, **options)


def register() -> None:
    """Registers the environments; importing loopfleet calls it. Without wrappers, so that fork()
    and other methods are accessible."""
    for name, env, vector in (("loopfleet/LoopTool-v0", LoopToolEnv, make_loop_tool_vector),
                              ("loop_tool-v0", LoopToolEnv, make_loop_tool_vector),
                              ("loopfleet/LoopTune-v0", LoopTuneEnv, make_loop_tune_vector)):
        if name not in gym.registry:
            gym.register(name, entry_point=env, vector_entry_point=vector, nondeterministic=True,
                         order_enforce=False, disable_env_checker=True)
    for name, fixed in LLVM_ENVIRONMENTS.items():
        for id in (f"loopfleet/{name}", name.replace("LLVM", "llvm")):
            if id not in gym.registry:
                gym.register(id, entry_point=LlvmEnv, vector_entry_point=LlvmVectorEnv, kwargs=fixed,
                             order_enforce=False, disable_env_checker=True)
