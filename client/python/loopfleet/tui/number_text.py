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
    """"+31 %", "-4 %", "x3.2": the second against the first."""
    if after >= 2 * before:
        return f"x{after / before:.1f}"
    return f"{(after / before - 1) * 100:+.0f} %"


def sparkline(values: Sequence[float], most: int) -> str:
    """The last ``most``, against the highest of all."""
    top = max(values, default=0)
    return "".join(_BARS[min(7, int(8 * value / top))] for value in values[-most:]) if top > 0 else ""


def clock_text(seconds: float) -> str:
    """"00:41"."""
    whole = int(seconds)
    return f"{whole // 60:02}:{whole % 60:02}"
