"""Finds the coordinator: argument, environment, configuration file, running local cluster,
default."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import LoopfleetError
from .toml_file import read_toml

DEFAULT_ADDRESS = "tcp://127.0.0.1:5570"

_local_clusters: list = []  # running in this process, newest last


def _from_file(key: str) -> str | None:
    """The value of ``key`` in table [client] of the file named by LOOPFLEET_CONFIG."""
    path = os.environ.get("LOOPFLEET_CONFIG")
    if not path:
        return None
    table = read_toml(path).get("client", {})
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise LoopfleetError(f"{path}: client.{key} must be a string")
    return value


def _setting(argument: str | None, key: str) -> str | None:
    return argument or os.environ.get(f"LOOPFLEET_{key.upper()}") or _from_file(key)


def find_address_or_none(address: str | None = None) -> str | None:
    """The endpoint that was named, or that of the newest local cluster of this process; None: there is none."""
    found = _setting(address, "address")
    if not found and _local_clusters:
        return _local_clusters[-1].address
    return found or None


def find_address(address: str | None = None) -> str:
    """The endpoint that clients connect to."""
    return find_address_or_none(address) or DEFAULT_ADDRESS


def find_keys(keys: str | os.PathLike | None = None, address: str = "") -> Path | None:
    """The directory of the keys of a client of ``address``; None: no keys. A local cluster of this process has none, so
    for its clients the environment and the file do not count."""
    if keys is None and any(cluster.address == address for cluster in _local_clusters):
        return None
    found = _setting(os.fspath(keys) if keys is not None else None, "keys")
    return Path(found) if found else None
