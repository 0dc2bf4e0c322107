"""The schedule editor: `loopfleet tune`, and ui() for tensors. See docs/EDITOR.md. Importing this imports no Textual."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

from ..errors import LoopfleetError, installing

if TYPE_CHECKING:
    from .._core import Tensor
    from ..client import Client
    from .editor import Editor

__all__ = ["run", "ui"]


def _need_textual() -> None:
    if importlib.util.find_spec("textual") is None:
        raise LoopfleetError(f"the editor needs the package Textual: {installing('tui')}")


def run(editor: Editor) -> None:
    """Shows the editor on this terminal until it is left, and closes it. LoopfleetError: Textual is not installed."""
    _need_textual()
    from .screen import EditorApp

    try:
        EditorApp(editor).run()
    finally:
        editor.close()


def ui(tensor: Tensor, path: str | os.PathLike = "", *, client: Client | None = None, threads: int = 1) -> None:
    """Edits a tensor's schedule on this terminal; it is the tensor's at each step. ``path``: a file that holds the C text
    of the schedule as it is. Without a ``client``, graded figures come from the coordinator of LOOPFLEET_ADDRESS, the
    configuration file, or the newest LocalCluster of this process; without any, figures are this process's alone."""
    _need_textual()
    from ..client import Client
    from ..settings import find_address_or_none
    from .editor import Editor
    from .sources import sources_of

    own = Client() if client is None and find_address_or_none() else None
    try:
        run(Editor(tensor.loop_tree, title=_title_of(tensor), threads=threads, sources=sources_of(client or own),
                   c_path=path, on_tree=tensor.set))
    finally:
        if own is not None:
            own.close()


def _title_of(tensor: Tensor) -> str:
    return " x ".join(f"{symbol.name} {size}" for symbol, size in zip(tensor.symbolic_shape, tensor.shape)) or "tensor"
