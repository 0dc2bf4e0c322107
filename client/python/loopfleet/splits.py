"""Assigns rows to the parts of a data set by the hash of a key, never at random or by order. So
adding rows moves none, and a program is in the same part of every data set."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from ._core import nearest
from .errors import LoopfleetError

PARTS = ("train", "validation", "test")

# Kind of split -> key of a row; rows with equal keys stay together. A row without a known program
# uses its text.
KINDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "program": lambda row: row["program"] or str(row["benchmark"] or row["ir"]),
    "region": lambda row: row["region"] or str(row["benchmark"] or row["ir"]),
    "device": lambda row: row["hardware_class"] or "",
}


class Split:
    """``kind`` is one of KINDS; ``shares`` are those of train, validation and test."""

    def __init__(self, kind: str = "program", shares: tuple[float, float, float] = (0.8, 0.1, 0.1), seed: int = 0):
        if kind not in KINDS:
            raise LoopfleetError(f"unknown split '{kind}'{nearest(kind, list(KINDS))}; valid: {', '.join(KINDS)}")
        if any(share < 0 for share in shares) or abs(sum(shares) - 1) > 1e-9:
            raise LoopfleetError(f"the shares {shares} of a split must be positive and add up to 1")
        self.kind = kind
        self.shares = shares
        self.seed = seed

    def part(self, row: dict[str, Any]) -> str:
        return self.part_of_key(KINDS[self.kind](row))

    def part_of_key(self, key: str) -> str:
        digest = hashlib.sha256(f"{self.seed}\0{key}".encode()).digest()
        place = int.from_bytes(digest[:8], "big") / 2**64
        if place < self.shares[0]:
            return PARTS[0]
        return PARTS[1] if place < self.shares[0] + self.shares[1] else PARTS[2]
