"""LLVM bitcode as a benchmark."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from . import _core

_MAGIC = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")


def read_bitcode(program: str | os.PathLike | bytes) -> bytes:
    """The bitcode in a file, or these bytes. ValueError: it is none, or has more than 16 MiB."""
    bitcode = bytes(program) if isinstance(program, (bytes, bytearray)) else Path(program).read_bytes()
    if bitcode[:4] not in _MAGIC:
        raise ValueError("this is no LLVM bitcode; llvm-as-19 makes it from text, clang-19 -emit-llvm -c from C")
    if len(bitcode) > _core.MAX_BLOB_BYTES:
        raise ValueError(f"the bitcode has {len(bitcode)} bytes; at most {_core.MAX_BLOB_BYTES}")
    return bitcode


def uri_of(bitcode: bytes) -> str:
    """The benchmark that this bitcode is."""
    return f"bitcode://sha256/{hashlib.sha256(bitcode).hexdigest()}"
