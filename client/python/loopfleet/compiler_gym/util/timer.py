"""Times a block."""

from __future__ import annotations

import time


class Timer:
    """``with Timer() as timer: …``; ``timer.time`` is in seconds, also while the block runs."""

    def __init__(self, label: str | None = None):
        self.label = label
        self._since: float | None = None
        self._elapsed = 0.0

    def __enter__(self) -> Timer:
        self._since = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._elapsed, self._since = self.time, None
        if self.label:
            print(f"{self.label}: {self}")

    @property
    def time(self) -> float:
        return self._elapsed if self._since is None else time.monotonic() - self._since

    def __str__(self) -> str:
        seconds = self.time
        for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
            if seconds >= scale:
                return f"{seconds / scale:.3g}{unit}"
        return f"{seconds / 1e-9:.3g}ns"
