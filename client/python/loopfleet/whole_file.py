"""Files that are replaced as a whole: a reader sees the old text or the new one, never half of it."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: str | os.PathLike, text: str) -> None:
    """Written beside the file and renamed. OSError: it cannot be written; the file is as it was."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
