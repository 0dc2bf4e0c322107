"""Registers the environments with Gymnasium by the names of their classes. Importing this imports neither."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

_GYMNASIUM = "gymnasium.envs.registration"

# Gymnasium id -> what it fixes, as in CompilerGym.
LLVM_ENVIRONMENTS: dict[str, dict[str, str]] = {
    "LLVM-v0": {},
    "LLVM-ic-v0": {"reward_space": "IrInstructionCountOz"},
    "LLVM-codesize-v0": {"reward_space": "ObjectTextSizeOz"},
    "LLVM-autophase-ic-v0": {"observation_space": "Autophase", "reward_space": "IrInstructionCountOz"},
    "LLVM-autophase-codesize-v0": {"observation_space": "Autophase", "reward_space": "ObjectTextSizeOz"},
    "LLVM-ir-ic-v0": {"observation_space": "Ir", "reward_space": "IrInstructionCountOz"},
    "LLVM-ir-codesize-v0": {"observation_space": "Ir", "reward_space": "ObjectTextSizeOz"},
    "LLVM-programl-ic-v0": {"observation_space": "Programl", "reward_space": "IrInstructionCountOz"},
}


def register() -> None:
    """Registers the environments; importing loopfleet does. Without wrappers, so that fork() and other methods are
    accessible."""
    from gymnasium.envs import registration

    def add(id: str, **fields: object) -> None:
        if id not in registration.registry:
            registration.register(id, order_enforce=False, disable_env_checker=True, **fields)

    for id, env, vector in (("loopfleet/LoopTool-v0", "LoopToolEnv", "make_loop_tool_vector"),
                            ("loop_tool-v0", "LoopToolEnv", "make_loop_tool_vector"),
                            ("loopfleet/LoopTune-v0", "LoopTuneEnv", "make_loop_tune_vector")):
        add(id, entry_point=f"loopfleet.envs:{env}", vector_entry_point=f"loopfleet.envs:{vector}", nondeterministic=True)
    for name, fixed in LLVM_ENVIRONMENTS.items():
        for id in (f"loopfleet/{name}", name.replace("LLVM", "llvm")):
            add(id, entry_point="loopfleet.envs:LlvmEnv", vector_entry_point="loopfleet.envs:LlvmVectorEnv", kwargs=fixed)


class _Finder:
    """Finds Gymnasium's registry, once, as a module that our environments are registered in when it has run."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != _GYMNASIUM or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            try:
                run(module)
            except BaseException:
                sys.meta_path.insert(0, self)  # for the next attempt
                raise
            register()

        spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec


def register_when_imported() -> None:
    """register(), now or as soon as Gymnasium is imported."""
    if _GYMNASIUM in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _Finder())
