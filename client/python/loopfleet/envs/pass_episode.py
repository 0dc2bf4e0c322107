"""An episode of an LLVM environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


@dataclass
class PassEpisode:
    """What is known of an episode: values by name at the present step, and those of its start."""

    passes: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    start: dict[str, Any] = field(default_factory=dict)
    earned: float = 0.0   # by the passes
    penalty: float = 0.0  # for those that failed, and what a wrapper adds
    folder: TemporaryDirectory[str] | None = None  # of the files that were observed

    @property
    def total_reward(self) -> float:
        return self.earned + self.penalty

    def copy(self) -> PassEpisode:
        """Without the files: they are removed with those of the episode that wrote them."""
        return PassEpisode(list(self.passes), dict(self.values), dict(self.start), self.earned, self.penalty)

    def file_of(self, bitcode: bytes) -> str:
        """The path of a new file with the bitcode of the present step."""
        self.folder = self.folder or TemporaryDirectory(prefix="loopfleet-")
        path = Path(self.folder.name, f"{len(self.passes)}.bc")
        path.write_bytes(bitcode)
        return str(path)

    def remove_files(self) -> None:
        if self.folder is not None:
            self.folder.cleanup()
