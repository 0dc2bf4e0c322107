"""What an export wrote: the counts and ranges of its card."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..rows import FIELDS, Row


@dataclass
class Summary:
    """What an export wrote."""

    columns: list[str] = field(default_factory=lambda: list(FIELDS))
    rows: Counter = field(default_factory=Counter)      # per part
    statuses: Counter = field(default_factory=Counter)
    grades: Counter = field(default_factory=Counter)
    gflops: array = field(default_factory=lambda: array("d"))
    spreads: array = field(default_factory=lambda: array("d"))
    duplicates: int = 0
    of_campaign: int = 0  # rows that are points of the card's campaign
    programs: set = field(default_factory=set)
    hardware: set = field(default_factory=set)
    compilers: set = field(default_factory=set)
    first: str = ""
    last: str = ""

    def add(self, row: Row, part: str, campaign: str | None = None) -> None:
        self.rows[part] += 1
        self.of_campaign += campaign is not None and campaign_tag(row["tag"]).get("campaign") == campaign
        self.statuses[row["status"]] += 1
        if row["status"] == "ok":
            self.grades[row["grade"]] += 1
            self.gflops.append(row["gflops"])
            self.spreads.append(row["spread"])
        self.programs.add(row["program"])
        if row["hardware_class"]:
            self.hardware.add((row["hardware_class"], row["hardware_model"]))
            self.compilers.add((row["llvm"], row["tier"], row["lowering"]))
        if time := row["finished_at"]:  # damaged rows have no time
            self.first = min(self.first or time, time)
            self.last = max(self.last, time)


def campaign_tag(tag: str | None) -> dict[str, Any]:
    """The tag of a campaign's job; empty: it is of another one."""
    if not tag or '"campaign"' not in tag:
        return {}
    try:
        told = json.loads(tag)
    except (ValueError, RecursionError):  # a tag from an older version
        return {}
    return told if isinstance(told, dict) and "campaign" in told else {}
