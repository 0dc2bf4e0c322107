"""The packages of requirements-learning.txt: torch, Stable-Baselines3, xgboost."""

import importlib
import sys
from pathlib import Path

import pytest


def learning_package(name):
    """Imports the module. If make_environment.sh could not install it, skips the test with the reason."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        reason = Path(sys.prefix) / "without-learning.txt"
        if not reason.exists():
            raise
        return pytest.skip(f"WITHOUT {name}: {reason.read_text().strip()}")
