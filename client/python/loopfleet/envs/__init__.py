"""Gymnasium environments: loopfleet/LoopTool-v0 (and loop_tool-v0), loopfleet/LoopTune-v0, and
loopfleet/LLVM-v0 with its variants (also llvm-v0, llvm-ic-v0, ...)."""

from ..actions import LOOPTOOL_ACTIONS, LOOPTUNE_ACTIONS, SIMPLE_ACTIONS, SPLIT_ACTIONS
from ..registration import LLVM_ENVIRONMENTS, register
from .datasets import Benchmark, Dataset, Datasets
from .environments import LoopToolEnv, LoopTuneEnv
from .llvm_env import LlvmEnv
from .llvm_vector_env import LlvmVectorEnv
from .pass_error import PassError
from .pass_rewards import PASS_REWARDS
from .rewards import REWARDS
from .spaces import NamedDiscrete
from .state import EnvState, ValidationResult, read_states, write_states
from .vector_env import WalkVectorEnv
from .walk_env import WalkEnv

__all__ = ["Benchmark", "Dataset", "Datasets", "EnvState", "LOOPTOOL_ACTIONS", "LLVM_ENVIRONMENTS", "LOOPTUNE_ACTIONS",
           "LlvmEnv", "LlvmVectorEnv", "LoopToolEnv", "LoopTuneEnv", "NamedDiscrete", "PASS_REWARDS", "PassError",
           "REWARDS", "SIMPLE_ACTIONS", "SPLIT_ACTIONS", "ValidationResult", "WalkEnv", "WalkVectorEnv", "read_states",
           "register", "write_states"]


def make_loop_tool_vector(num_envs: int = 1, **options) -> WalkVectorEnv:
    return WalkVectorEnv(num_envs, env_class=LoopToolEnv, **options)


def make_loop_tune_vector(num_envs: int = 1, **options) -> WalkVectorEnv:
    return WalkVectorEnv(num_envs, env_class=LoopTuneEnv, **options)
