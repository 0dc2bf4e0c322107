"""CFile: the C text of the tree that is edited, for a viewer in another terminal."""

from __future__ import annotations

import os
from pathlib import Path


class CFile:
    """A reader never sees half a file: text is written beside it and renamed. Text that is there already is not
    written again."""

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self._written: str | None = None

    def write(self, text: str) -> None:
        """OSError: the file cannot be written."""
        if text == self._written:
            return
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            beside.write_text(text, encoding="utf-8")
            os.replace(beside, self.path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        self._written = text
