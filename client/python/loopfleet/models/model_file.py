"""A model as one file, NumPy's .npz without pickle: arrays, and facts as JSON. Reading
it runs no code of the file."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .errors import BadModelFile

_FACTS = "facts"
_FORMAT = 1


def write_model(path: str | Path, kind: str, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Writes the file whole or not at all. ``kind`` is the class's name."""
    text = json.dumps({"format": _FORMAT, "kind": kind, **facts}, default=lambda number: number.item())  # NumPy's
    path = Path(path)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(new, "wb") as file:
            np.savez_compressed(file, **arrays, **{_FACTS: np.frombuffer(text.encode(), np.uint8)})
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def read_model(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(facts, arrays). BadModelFile: it is no file of this kind, or of a newer version."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = json.loads(arrays.pop(_FACTS).tobytes())
        found, version = facts["kind"], facts["format"]
    except FileNotFoundError:
        raise BadModelFile(f"there is no file {path}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RuntimeError, zipfile.BadZipFile,
            zlib.error) as error:
        raise BadModelFile(f"{path} holds no model: {error}") from error
    if found != kind:
        raise BadModelFile(f"{path} holds a {found}, not a {kind}")
    if version != _FORMAT:
        raise BadModelFile(f"{path} has format {version}; this version of loopfleet reads {_FORMAT}")
    return facts, arrays


def options_of(facts: dict[str, Any], number: Callable[[Any], Any], *names: str) -> dict[str, Any]:
    """Arguments of a model's constructor; files of earlier versions lack them, which means the defaults."""
    return {name: number(facts[name]) for name in names if name in facts}


@contextmanager
def blaming_file(path: str | Path) -> Iterator[None]:
    """BadModelFile for what facts or arrays that do not fit raise."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise BadModelFile(f"{path} is damaged: {error}") from error


def check_agent(features: int, actions: list[str]) -> None:
    """ValueError: no agent has so few of them."""
    if features < 1 or not actions:
        raise ValueError(f"an agent over {features} features and {len(actions)} actions")


def check_features(path: str | Path, facts: dict[str, Any], names: tuple[str, ...]) -> None:
    """BadModelFile: the model was fitted to other features than this version computes."""
    if facts.get("features") != list(names):
        raise BadModelFile(f"{path} was fitted to other features than this version of loopfleet computes: fit it again")
