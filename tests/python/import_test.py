"""What `import loopfleet` loads, and that what it does not load is found when it is used."""

import ast
import importlib
import os
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import loopfleet

PACKAGE = Path(os.environ["LOOPFLEET_SOURCE"]) / "client/python/loopfleet"


def in_fresh_interpreter(code):
    """What the code prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_alone_loads_no_other_package():
    loaded = in_fresh_interpreter("import sys; before = set(sys.modules); import loopfleet\n"
                                  "print(*sorted(set(sys.modules) - before))").split()
    ours = {name for name in loaded if name.partition(".")[0] == "loopfleet"}
    assert ours == {"loopfleet", "loopfleet._core", "loopfleet.errors", "loopfleet.registration"}
    foreign = {name.partition(".")[0] for name in loaded} - {"loopfleet"}
    assert foreign <= sys.stdlib_module_names, "another package"
    assert not foreign & {"asyncio", "concurrent", "dataclasses", "inspect", "json", "re", "typing"}


def test_every_public_name_is_there():
    for name in loopfleet.__all__:
        assert getattr(loopfleet, name) is not None
    assert set(loopfleet.__all__) <= set(dir(loopfleet))
    star = {}
    exec("from loopfleet import *", star)
    assert set(loopfleet.__all__) <= set(star)


def test_modules_are_attributes():
    said = in_fresh_interpreter("import loopfleet\n"
                                "print(loopfleet.tensor.Tensor, loopfleet.loop_tool.RawTensor, loopfleet.jobs.job, loopfleet.actions.ACTION_SPACES)")
    assert "loop_tool.RawTensor" in said
    with pytest.raises(AttributeError, match="'loopfleet' has no attribute 'Clint'"):
        loopfleet.Clint
    with pytest.raises(ImportError, match="Clint"):
        from loopfleet import Clint  # noqa: F401
    assert not hasattr(loopfleet, "__wrapped__")


def test_type_checkers_see_what_is_loaded():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING")
    assert {alias.name: line.module for line in block.body for alias in line.names} == loopfleet._MODULES


def test_classes_are_pickled_by_name():
    for kind in (loopfleet.Client, loopfleet.ResultBatch, loopfleet.LoopfleetError, loopfleet.Profile):
        assert pickle.loads(pickle.dumps(kind)) is kind


def exceptions_of_the_package():
    for module in pkgutil.walk_packages(loopfleet.__path__, "loopfleet.", onerror=lambda name: None):
        if module.name.endswith(("__main__", "_confined_start")):
            continue
        try:
            names = vars(importlib.import_module(module.name))
        except ImportError:  # of an extra
            continue
        yield from (kind for kind in names.values() if isinstance(kind, type) and issubclass(kind, Exception)
                    and kind.__module__.startswith("loopfleet") and not kind.__name__.startswith("_"))


def test_every_exception_can_be_pickled():
    from loopfleet.envs.pass_error import PassError
    from loopfleet.errors import of_ticket
    from loopfleet.models import UnknownProgram

    made = {loopfleet.Refused: loopfleet.Refused("BUSY", "later", True, 1500),
            UnknownProgram: UnknownProgram("of nothing like it", ["mm"]),
            PassError: PassError(loopfleet._core.failed_outcome("NOT_FOUND", "it is gone"))}
    assert issubclass(PassError, loopfleet.LoopfleetError) and issubclass(PassError, RuntimeError)
    kinds = set(exceptions_of_the_package())
    assert kinds > {*made, loopfleet.JobError, loopfleet.ScheduleError, loopfleet.DeadlineExceeded}
    errors = [made.get(kind) or kind("what is wrong") for kind in kinds]
    for error in [*errors, of_ticket(7, made[loopfleet.Refused])]:
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert (str(copy), copy.args, vars(copy)) == (str(error), error.args, vars(error)), type(error)
    with pytest.raises(loopfleet.JobError) as raised:
        loopfleet.job("benchmark://mm-v0/mm8_8_8", ["nonsense"]).tree  # noqa: B018
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), vars(copy)) == (str(raised.value), vars(raised.value)) and copy.code == "INVALID_ACTION"


@pytest.mark.parametrize("imports", ["import gymnasium as gym, loopfleet", "import loopfleet, gymnasium as gym",
                                     "import loopfleet.envs, gymnasium as gym",
                                     "import loopfleet; import gymnasium.spaces; import gymnasium as gym"])
def test_environments_are_registered_whichever_is_imported_first(imports):
    said = in_fresh_interpreter(f"import sys; {imports}\n"
                                "print(sum('loop' in id for id in gym.registry), 'loopfleet.envs' in sys.modules)\n"
                                "print(type(gym.make('loopfleet/LoopTune-v0', reward_space=None)).__name__)\n"
                                "print(type(gym.make_vec('loop_tool-v0', num_envs=2, reward_space=None)).__name__)")
    number, loaded, env, vector = said.split()
    assert number == "11" and env == "LoopTuneEnv" and vector == "WalkVectorEnv"
    assert loaded == str("loopfleet.envs" in imports)


def test_gymnasium_finds_the_environments_by_the_packages_name():
    said = in_fresh_interpreter("import gymnasium as gym\nprint(type(gym.make('loopfleet:loopfleet/LoopTune-v0', reward_space=None)).__name__)")
    assert said.split() == ["LoopTuneEnv"]
