"""Reads TOML files on every supported version of Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .errors import LoopfleetError


def read_toml(path: str | os.PathLike) -> dict[str, Any]:
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        try:
            import tomli as tomllib
        except ModuleNotFoundError:
            raise LoopfleetError(f"reading {path} needs Python 3.11 or the package tomli") from None
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise LoopfleetError(f"cannot read {path}: {error}") from error
