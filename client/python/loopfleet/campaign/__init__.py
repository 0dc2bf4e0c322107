"""Campaigns: n points of a distribution of benchmarks and action walks, measured to a stated
precision. The specification alone determines the points, so an interrupted campaign continues
where it stopped and measures the same points as an uninterrupted one."""

from .log import Log, failures, outcomes, standing
from .point import Point, check, hosts_of, job_of, points, points_at
from .remeasurement import Remeasurement, remeasured
from .runner import Progress, run
from .spec import BadSpec, Spec, read_spec

__all__ = ["BadSpec", "Log", "Point", "Progress", "Remeasurement", "Spec", "check", "failures", "hosts_of", "job_of", "outcomes",
           "points", "points_at", "read_spec", "remeasured", "run", "standing"]
