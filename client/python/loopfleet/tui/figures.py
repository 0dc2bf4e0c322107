"""Figures: what is known of a tree's speed. A local figure is a first impression; only graded ones are kept."""

from __future__ import annotations

from dataclasses import dataclass

from .._core import Outcome


@dataclass(frozen=True)
class Graded:
    """A measurement by a worker."""

    gflops: float
    grade: str  # A to D
    spread: float  # relative half-width of its interval
    elapsed_ns: float
    worker: str
    hardware: str  # "AMD EPYC 7R13 avx2"
    hardware_class: str


@dataclass
class Figures:
    """Of one tree. ``local`` and ``graded`` are None until they arrive; where a kernel failed, the failure's code and
    message stand in place of a figure."""

    local_gflops: float | None = None
    local_failure: str = ""
    graded: Graded | None = None
    graded_failure: str = ""
    is_measured_here: bool = False  # the local figure is on its way
    is_measured: bool = False  # the graded one is


def graded_of(outcome: Outcome) -> Graded:
    """Of an outcome that is ok."""
    hardware = outcome.to_dict()["hardware"]
    words = [hardware.get("model") or hardware.get("class") or "", hardware.get("isa") or ""]
    return Graded(outcome.gflops, outcome.grade, outcome.spread, outcome.elapsed_ns, outcome.worker,
                  " ".join(word for word in words if word), hardware["class"])
