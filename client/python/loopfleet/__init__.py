"""loopfleet: measure loop schedules on a cluster, from Python.

    import loopfleet
    with loopfleet.LocalCluster() as cluster, loopfleet.Client() as client:
        print(client.evaluate("benchmark://mm-v0/mm64_64_64", ["down", "split_16"]))

With the extra ``gym``, importing this registers ``loopfleet/LoopTool-v0`` (also ``loop_tool-v0``)
and ``loopfleet/LoopTune-v0`` with Gymnasium. Modules are loaded when a name of theirs is first
used. See docs/PYTHON.md.
"""

import importlib as _importlib
import importlib.util as _importlib_util

from . import registration as _registration
from ._core import IR, Job, JobError, Loop, LoopTree, Outcome, Walk, __version__
from .errors import (BenchmarkInitError, ClientClosed, ClusterError, CoordinatorReplaced, CoordinatorUnavailable,
                     DeadlineExceeded, LoopfleetError, Refused, ScheduleError)

TYPE_CHECKING = False  # typing's own would load it
if TYPE_CHECKING:
    from .async_client import AsyncClient
    from .best_schedule import BestSchedule
    from .client import Client
    from .confirmation import Confirmation, Confirmed
    from .jobs import job
    from .local_cluster import LocalCluster
    from .profile import Profile, ProfileLine
    from .results import FAILURE_NAMES, FAILURE_NUMBERS, GRADES, RETRYABLE, SOURCES, ResultBatch
    from .schedule_search import PassSearchResult, SearchResult, search
    from .tui import ui

# The imports above, for __getattr__.
_MODULES = {
    "AsyncClient": "async_client", "BestSchedule": "best_schedule", "Client": "client",
    "Confirmation": "confirmation", "Confirmed": "confirmation", "job": "jobs", "LocalCluster": "local_cluster",
    "Profile": "profile", "ProfileLine": "profile", "FAILURE_NAMES": "results", "FAILURE_NUMBERS": "results",
    "GRADES": "results", "RETRYABLE": "results", "SOURCES": "results", "ResultBatch": "results",
    "PassSearchResult": "schedule_search",
    "SearchResult": "schedule_search", "search": "schedule_search", "ui": "tui"}

__all__ = ["AsyncClient", "BenchmarkInitError", "BestSchedule", "Client", "ClientClosed", "ClusterError",
           "Confirmation", "Confirmed", "CoordinatorReplaced", "CoordinatorUnavailable", "DeadlineExceeded",
           "FAILURE_NAMES", "FAILURE_NUMBERS",
           "GRADES", "IR", "Job", "JobError", "LocalCluster", "Loop", "LoopTree", "LoopfleetError", "Outcome", "PassSearchResult",
           "Profile", "ProfileLine", "RETRYABLE", "Refused", "ResultBatch", "SOURCES", "ScheduleError",
           "SearchResult", "Walk", "__version__", "job", "search", "ui"]

if _importlib_util.find_spec("gymnasium") is not None:
    __all__.append("envs")
    _registration.register_when_imported()


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value = getattr(_importlib.import_module(f".{_MODULES[name]}", __name__), name)
    elif name.isidentifier() and not name.startswith("_") and _importlib_util.find_spec(f".{name}", __name__) is not None:
        try:
            value = _importlib.import_module(f".{name}", __name__)
        except ImportError as missing:  # a package of an extra
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {missing}") from missing
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
