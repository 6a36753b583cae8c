"""Who is at the other end of a unix socket; None where the system cannot tell."""

import socket
import struct
import sys
from typing import Final

_LOCAL_PEERCRED: Final = 1  # sys/un.h of macOS and FreeBSD; level 0
_LOCAL_PEERPID: Final = 2  # sys/un.h of macOS


def peer_uid(connection: socket.socket) -> int | None:
    """User id of the process that connected, as the kernel knows it."""
    try:
        if sys.platform == "linux":
            _, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return int(uid)
        if sys.platform == "darwin" or sys.platform.startswith("freebsd"):
            # struct xucred: version, uid, group count, 16 groups
            return int(struct.unpack_from("II", connection.getsockopt(0, _LOCAL_PEERCRED, 76))[1])
    except (OSError, struct.error):
        return None
    return None


def peer_pid(connection: socket.socket) -> int | None:
    """Process that listened when this connection was made to it."""
    try:
        if sys.platform == "linux":
            pid, _, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return int(pid) or None  # 0: of another container
        if sys.platform == "darwin":
            return int(connection.getsockopt(0, _LOCAL_PEERPID)) or None
    except (OSError, struct.error):
        return None
    return None
