"""Numbers as the screen shows them."""

from __future__ import annotations

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"


def rate_text(gflops: float) -> str:
    """GFLOP/s, in three or four characters: 7.31, 97.6, 204."""
    if gflops < 10:
        return f"{gflops:.2f}"
    return f"{gflops:.1f}" if gflops < 100 else f"{gflops:.0f}"


def time_text(ns: float) -> str:
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns:.3g} ns"


def change_text(before: float, after: float) -> str:
    """"+31 %", "-4 %", "0 %", "x3.2": the second against the first."""
    if after >= 2 * before:
        return f"x{after / before:.1f}"
    percent = round((after / before - 1) * 100)
    return f"{percent:+d} %" if percent else "0 %"


def sparkline(values: Sequence[float], most: int) -> str:
    """The last ``most``, between the lowest and the highest of all; level where these are within 5 %."""
    low, high = min(values, default=0), max(values, default=0)
    if high <= 1.05 * low:
        return _BARS[3] * min(len(values), most)
    return "".join(_BARS[round(7 * (value - low) / (high - low))] for value in values[-most:])


def clock_text(seconds: float) -> str:
    """"00:41"."""
    whole = int(seconds)
    return f"{whole // 60:02}:{whole % 60:02}"
