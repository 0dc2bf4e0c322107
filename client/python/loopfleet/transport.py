"""Creates the ZeroMQ socket: a DEALER connected to a coordinator, with its keys."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import zmq

from .errors import LoopfleetError

# The same values as in the C++ client (common/wire/transport/dealer.cc).
_MAX_MESSAGE_BYTES = 1 << 20
_HANDSHAKE_MS = 5000
_HEARTBEAT_MS = 1000
_HEARTBEAT_LIMIT_MS = 5000
_FIRST_RECONNECT_MS = 100
_LAST_RECONNECT_MS = 2000
_HIGH_WATER_MARK = 1000


def connect(context: zmq.Context, address: str, keys: Path | None) -> zmq.Socket:
    """A socket that keeps trying to reach ``address`` until it is closed."""
    if not address.startswith(("tcp://", "ipc://")):
        raise LoopfleetError(f"'{address}' is no address: tcp://HOST:PORT or ipc:///PATH")
    socket = context.socket(zmq.DEALER)
    try:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.MAXMSGSIZE, _MAX_MESSAGE_BYTES)
        socket.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MS)
        socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, _HEARTBEAT_LIMIT_MS)
        socket.setsockopt(zmq.RECONNECT_IVL, _FIRST_RECONNECT_MS)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, _LAST_RECONNECT_MS)
        socket.setsockopt(zmq.SNDHWM, _HIGH_WATER_MARK)
        socket.setsockopt(zmq.RCVHWM, _HIGH_WATER_MARK)
        if keys is not None:
            _use_keys(socket, keys)
        socket.connect(address)
    except zmq.ZMQError as error:
        socket.close()
        raise LoopfleetError(f"cannot connect to '{address}': {error}") from error
    except BaseException:
        socket.close()
        raise
    return socket


def _use_keys(socket: zmq.Socket, keys: Path) -> None:
    """Sets up CURVE from the files of docs/SECURITY.md: one NAME.key_secret, and
    coordinator.key."""
    import zmq.auth

    secrets = sorted(keys.glob("*.key_secret"))
    if len(secrets) != 1:
        raise LoopfleetError(f"keys: {keys} holds {len(secrets)} files NAME.key_secret; a client has one "
                             "(`loopfleet keygen --role client --name NAME --out DIR` makes it)")
    mode = secrets[0].lstat()
    if not stat.S_ISREG(mode.st_mode) or mode.st_mode & 0o177 or mode.st_uid != os.geteuid():
        raise LoopfleetError(f"keys: {secrets[0]} must be a plain file of yours that nobody else can read: "
                             f"chmod 600 {secrets[0]}")
    try:
        public, secret = zmq.auth.load_certificate(secrets[0])
        server, _ = zmq.auth.load_certificate(keys / "coordinator.key")
    except (OSError, ValueError) as error:
        raise LoopfleetError(f"keys: {error}") from error
    if secret is None:
        raise LoopfleetError(f"keys: {secrets[0]} has no secret key")
    socket.setsockopt(zmq.CURVE_PUBLICKEY, public)
    socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
    socket.setsockopt(zmq.CURVE_SERVERKEY, server)
