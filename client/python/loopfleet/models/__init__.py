"""Models that learn from measured schedules: which are quick (CostModel, ComparisonModel), which to
try first (PolicyModel), and agents that walk to them (DQN, PPO); and an agent that orders LLVM passes
(PassAgent). docs/LEARNING.md.

Needs the extra ``models``; the agents and the kinds "network" need torch as well. Neither package is
imported before a model is made, fitted or loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .comparison_model import ComparisonModel
    from .cost_model import CostModel
    from .distributed import ActorFailed, ActorOptions, train_distributed
    from .dqn import DQN
    from .errors import BadModelFile, MissingPackage, ModelError, NotFitted, UnknownProgram
    from .evaluation import evaluate
    from .landscapes import landscape
    from .measured import Measured, read_rows
    from .pass_agent import PassAgent
    from .pass_rollouts import PassRollouts
    from .pass_state import PassState
    from .pass_training import PassUpdate, train_pass_agent
    from .pass_trajectory import PassTrajectory
    from .policy_model import PolicyModel
    from .ppo import PPO
    from .program_graph import Vocabulary
    from .program_sizes import instruction_counts
    from .schedule_features import FEATURE_NAMES, features

# Name -> its module, which is imported when the name is used first.
_HOMES = {"ComparisonModel": "comparison_model", "CostModel": "cost_model", "DQN": "dqn", "PPO": "ppo",
          "PolicyModel": "policy_model", "Measured": "measured", "read_rows": "measured", "evaluate": "evaluation",
          "features": "schedule_features", "FEATURE_NAMES": "schedule_features", "landscape": "landscapes",
          "train_distributed": "distributed", "ActorOptions": "distributed", "ActorFailed": "distributed",
          "PassAgent": "pass_agent", "PassRollouts": "pass_rollouts", "PassState": "pass_state",
          "PassTrajectory": "pass_trajectory", "PassUpdate": "pass_training", "train_pass_agent": "pass_training",
          "Vocabulary": "program_graph", "instruction_counts": "program_sizes", "BadModelFile": "errors",
          "MissingPackage": "errors", "ModelError": "errors", "NotFitted": "errors", "UnknownProgram": "errors"}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'loopfleet.models' has no attribute '{name}'")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
