"""What runs tensors: ``cpu`` compiles kernels with `loopfleet-worker serve` and calls them in this process; ``isolated``
runs them in a sandboxed child of that, on copies: a stranger's schedule cannot harm this process, but its values are not
compared with a reference, as those of ``cpu`` are; ``cpu_interpreted`` walks their loops in C++, slowly, and needs no
compiler."""

from __future__ import annotations

import os
import shutil
from numbers import Integral
from pathlib import Path

from .. import _core
from .errors import TensorError

__all__ = ["Backend", "backends", "get_default_backend", "set_default_backend", "set_threads", "set_verify"]

_ALIASES = {"cpp": "cpu", "loop_nest": "cpu"}  # of loop_tool
_BACKENDS = ("cpu", "cpu_interpreted", "isolated")
_settings = {"backend": "cpu", "threads": 1, "verify": "once"}


def find_worker() -> str:
    """`loopfleet-worker`: in LOOPFLEET_BIN, in this package, or in PATH."""
    if folder := os.environ.get("LOOPFLEET_BIN"):
        return str(Path(folder) / "loopfleet-worker")
    bundled = Path(__file__).parent.parent / "bin" / "loopfleet-worker"
    if bundled.exists():
        return str(bundled)
    return shutil.which("loopfleet-worker") or "loopfleet-worker"


def _memory_file() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "loopfleet", "verified")


def _apply(**changed: str | int) -> None:
    """Takes over what ``changed`` of the settings, unless the core refuses it."""
    wanted = {**_settings, **changed}
    if wanted["backend"] == "cpu_interpreted":
        _core.use_interpreter()
    elif wanted["backend"] == "isolated":
        _core.use_isolated(find_worker(), wanted["threads"])
    else:
        _core.use_cpu(find_worker(), _memory_file(), wanted["threads"], wanted["verify"] == "once")
    _settings.update(changed)


def local_timer(threads: int) -> _core.LocalTimer:
    """Times trees in this process by kernels that are compiled, and verified, as those of tensors are."""
    return _core.LocalTimer(find_worker(), _memory_file(), threads, _settings["verify"] == "once")


def backends() -> list[str]:
    return list(_BACKENDS)


def get_default_backend() -> str:
    return _settings["backend"]


def set_default_backend(name: str) -> None:
    """For all tensors from now on. TensorError: there is none of this name."""
    name = _ALIASES.get(name, name)
    if name not in _BACKENDS:
        raise TensorError(f"there is no backend '{name}': use {', '.join(_BACKENDS)}")
    if name != _settings["backend"]:
        _apply(backend=name)


def set_threads(count: int) -> None:
    """The most threads that loops annotated ``parallel`` are split over; 1 at first."""
    if not isinstance(count, Integral) or not 1 <= count <= _core.MOST_THREADS:
        raise TensorError(f"set_threads({count}): a whole number from 1 to {_core.MOST_THREADS}")
    _apply(threads=int(count))


def set_verify(when: str) -> None:
    """``once``: new code runs once in a child process between guard pages and is compared with a reference, and is
    remembered in ~/.cache/loopfleet; ``never``: code runs here at once."""
    if when not in ("once", "never"):
        raise TensorError(f"set_verify('{when}'): use once or never")
    _apply(verify=when)


class Backend:
    """``with Backend("cpu_interpreted"):`` runs what is evaluated inside on that backend."""

    def __init__(self, backend: str):
        self.backend = backend

    def __enter__(self) -> Backend:
        self._before = get_default_backend()
        set_default_backend(self.backend)
        return self

    def __exit__(self, *_: object) -> None:
        set_default_backend(self._before)


_apply()
