# SPDX-License-Identifier: Apache-2.0
"""Loopback ports for servers that a test starts."""

import random
import socket

# Below Linux' ephemeral range, so that no outgoing connection of another test takes one first.
FIRST, LAST = 10000, 32000
_handed_out = set()


def free_port():
    """A free port of 127.0.0.1 that this process has not handed out yet."""
    for _ in range(1000):
        port = random.randint(FIRST, LAST)
        if port in _handed_out:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _handed_out.add(port)
        return port
    raise RuntimeError("no free port found on 127.0.0.1")
