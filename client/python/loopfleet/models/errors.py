"""Exceptions of models."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ..errors import LoopfleetError, installing


class ModelError(LoopfleetError):
    """A model cannot do what it was asked for."""


class NotFitted(ModelError):
    """The model was neither fitted nor loaded."""


class UnknownProgram(ModelError):
    """The model was fitted to nothing like this program. ``known``: the kinds of programs it was
    fitted to."""

    def __init__(self, message: str, known: list[str]):
        super().__init__(message)
        self.known = known


class BadModelFile(ModelError):
    """The file holds no model of this class and version."""


class MissingPackage(ModelError, ImportError):
    """A package of an extra is not installed."""


def need(package: str, extra: str) -> ModuleType:
    """Imports a package; MissingPackage says which extra has it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingPackage(f"{package} is not installed: {installing(extra)}") from error
