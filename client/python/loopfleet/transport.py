"""The one place that knows ZeroMQ: a DEALER to a coordinator, and its keys."""

from __future__ import annotations

from pathlib import Path

import zmq

from .errors import LoopfleetError

# As the C++ client has them (common/wire/socket.cc).
_MAX_MESSAGE_BYTES = 1 << 20
_HANDSHAKE_MS = 5000
_HEARTBEAT_MS = 1000
_HEARTBEAT_LIMIT_MS = 5000
_FIRST_RECONNECT_MS = 100
_LAST_RECONNECT_MS = 2000
_HIGH_WATER_MARK = 1000


def connect(context: zmq.Context, address: str, keys: Path | None) -> zmq.Socket:
    """A socket that goes on trying to reach ``address`` until it is closed."""
    if not address.startswith(("tcp://", "ipc://")):
        raise LoopfleetError(f"'{address}' is no address: tcp://HOST:PORT or ipc:///PATH")
    socket = context.socket(zmq.DEALER)
    try:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.MAXMSGSIZE, _MAX_MESSAGE_BYTES)
        socket.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MS)
        socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, _HEARTBEAT_LIMIT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TTL, _HEARTBEAT_LIMIT_MS)
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
    raise LoopfleetError(f"keys ({keys}) do not work in this version: only loopback and ipc:// are served")
