"""Sources: where an editor's figures, better trees and shares of lines come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..client import Client
from . import background_search, graded_figure, local_figure
from .background_search import BackgroundSearch
from .graded_figure import GradedFigures
from .line_profile import LineProfile, line_profile_of
from .local_figure import LocalFigures
from .proposal import FleetBest, fleet_best_of


@dataclass(frozen=True)
class Sources:
    """Their threads pass each figure to the editor's `deliver`. None: there are no such figures."""

    local: Callable[[local_figure.Deliver], LocalFigures] | None = None
    graded: Callable[[graded_figure.Deliver], GradedFigures] | None = None
    search: Callable[[background_search.Deliver], BackgroundSearch] = lambda deliver: BackgroundSearch(None, deliver)
    fleet: FleetBest = field(default_factory=lambda: fleet_best_of(None))
    profile: LineProfile = field(default_factory=lambda: line_profile_of(None))
    cluster: str = ""  # its address; "": there is none


def sources_of(client: Client | None, **fields: Any) -> Sources:
    """Of this machine, and of the client's cluster if there is one. ``fields`` are those of its jobs."""
    if client is None:
        return Sources(local=LocalFigures)
    return Sources(local=LocalFigures,
                   graded=lambda deliver: GradedFigures(client, deliver, fields),
                   search=lambda deliver: BackgroundSearch(client, deliver),
                   fleet=fleet_best_of(client), profile=line_profile_of(client), cluster=client.address)
