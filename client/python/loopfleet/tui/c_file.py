"""CFile: the C text of the tree that is edited, for a viewer in another terminal."""

from __future__ import annotations

import os
from pathlib import Path

from ..whole_file import write_whole


class CFile:
    """A reader never sees half a file. Text that is there already is not written again."""

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self._written: str | None = None

    def write(self, text: str) -> None:
        """OSError: the file cannot be written."""
        if text == self._written:
            return
        write_whole(self.path, text)
        self._written = text
