"""Observed values that are too large for an outcome. The coordinator keeps them for a time, by their
SHA-256, and the outcome has ``{"sha256": ..., "bytes": ...}`` in their place."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from . import _core
from .errors import Refused

_KINDS = {name: kind for name, kind, _ in _core.pass_observations()}


def is_blob(value: Any) -> bool:
    return isinstance(value, dict)


def in_full(name: str, value: Any, get_blob: Callable[[str], bytes]) -> Any:
    """The value of the observation of this name: bytes, text, or what the outcome has."""
    kind = _KINDS.get(name)
    if is_blob(value):
        value = get_blob(value["sha256"])
        return value if kind == "bytes" else value.decode("utf-8", "replace")
    return base64.b64decode(value) if kind == "bytes" and isinstance(value, str) else value


def in_full_or_again(name: str, value: Any, get_blob: Callable[[str], bytes], again: Callable[[], Any]) -> Any:
    """Likewise. For a blob that is kept no more, ``again`` observes the value again."""
    try:
        return in_full(name, value, get_blob)
    except Refused as error:
        if error.code != "NOT_FOUND":
            raise
    return in_full(name, again(), get_blob)
