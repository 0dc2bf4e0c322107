"""Where programs write their logs."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path


def create_user_logs_dir(name: str, dir: Path | str | None = None) -> Path:
    """A new folder for a program's logs: ``name`` and the time, in ``dir``, COMPILER_GYM_LOGS or
    ~/logs/compiler_gym."""
    base = Path(dir or os.environ.get("COMPILER_GYM_LOGS") or Path.home() / "logs/compiler_gym")
    made = base / name / datetime.now().isoformat(timespec="microseconds")
    made.mkdir(parents=True)
    return made
