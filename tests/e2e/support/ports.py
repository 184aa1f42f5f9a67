# SPDX-License-Identifier: Apache-2.0
"""Loopback ports for servers that a test starts."""

import random
import socket

# Below Linux' ephemeral range, so that no outgoing connection of another test takes one first.
FIRST, LAST = 10000, 32000
BLOCK = 100  # ports that a test process takes at once
_blocks = {}  # first port: the socket that keeps other test processes away
_left = []  # free for this process


def _take_block():
    """
    Reserve ports for this process. Tests run side by side, and some tell a server its port long before
    it listens. An abstract UNIX address lives as long as its process and, like a port, in one network namespace.
    """
    firsts = list(range(FIRST, LAST, BLOCK))
    random.shuffle(firsts)
    for first in firsts:
        if first in _blocks:
            continue
        guard = socket.socket(socket.AF_UNIX)
        try:
            guard.bind(f"\0spanflame-test-ports-{first}")
        except OSError:
            guard.close()
            continue
        _blocks[first] = guard
        _left.extend(range(first, first + BLOCK))
        return
    raise RuntimeError("every block of ports on 127.0.0.1 is taken by another test")


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port():
    """A free port of 127.0.0.1 that nobody else is given while this process lives."""
    while True:
        if not _left:
            _take_block()
        port = _left.pop()
        if _is_free(port):
            return port
