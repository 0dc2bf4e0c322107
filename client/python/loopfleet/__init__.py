"""loopfleet: measure loop schedules on a cluster, from Python.

    import loopfleet
    with loopfleet.LocalCluster() as cluster, loopfleet.Client() as client:
        print(client.evaluate("benchmark://mm-v0/mm64_64_64", ["down", "split_16"]))

With the extra ``gym``, importing this registers ``loopfleet/LoopTool-v0`` (also ``loop_tool-v0``)
and ``loopfleet/LoopTune-v0`` with Gymnasium. See docs/PYTHON.md.
"""

import importlib.util as _importlib_util

from ._core import IR, Job, JobError, Loop, LoopTree, Outcome, Walk, __version__
from .async_client import AsyncClient
from .best_schedule import BestSchedule
from .client import Client
from .confirmation import Confirmation, Confirmed
from .errors import (ClientClosed, ClusterError, CoordinatorReplaced, CoordinatorUnavailable, DeadlineExceeded,
                     LoopfleetError, Refused, ScheduleError)
from .jobs import job
from .local_cluster import LocalCluster
from .profile import Profile, ProfileLine
from .results import FAILURE_NAMES, FAILURE_NUMBERS, GRADES, RETRYABLE, SOURCES, ResultBatch
from .schedule_search import SearchResult, search
from .tui import ui

__all__ = ["AsyncClient", "BestSchedule", "Client", "ClientClosed", "ClusterError", "Confirmation", "Confirmed",
           "CoordinatorReplaced", "CoordinatorUnavailable", "DeadlineExceeded", "FAILURE_NAMES", "FAILURE_NUMBERS",
           "GRADES", "IR", "Job", "JobError", "LocalCluster", "Loop", "LoopTree", "LoopfleetError", "Outcome",
           "Profile", "ProfileLine", "RETRYABLE", "Refused", "ResultBatch", "SOURCES", "ScheduleError",
           "SearchResult", "Walk", "__version__", "job", "search", "ui"]

if _importlib_util.find_spec("gymnasium") is not None:
    from . import envs

    envs.register()
    __all__.append("envs")
