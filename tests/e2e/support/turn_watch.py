# SPDX-License-Identifier: Apache-2.0
"""The daemon's longest turns: the CPU time that each of its event loops spends between two waits, as
turn_watch.c measures it inside of it."""

import mmap
import os
import struct
import tempfile

SLOTS = 64
SLOT = struct.Struct("=QQQQQ")  # as in turn_watch.h: the longest, all, how many, and more; ns


class TurnWatch:
    """Of one daemon, which is to be started with `environment`."""

    def __init__(self, library):
        self._file = tempfile.NamedTemporaryFile(prefix="spanflame-turns-")
        self._file.truncate(SLOTS * SLOT.size)
        self._room = mmap.mmap(self._file.fileno(), SLOTS * SLOT.size)
        self.environment = {"LD_PRELOAD": library, "TURN_WATCH_FILE": self._file.name}

    def reset(self):
        self._room[:] = bytes(SLOTS * SLOT.size)

    def longest_ms(self):
        """Of all threads."""
        return max(self._slots())[0] / 1e6

    def total_ms(self):
        return sum(slot[1] for slot in self._slots()) / 1e6

    def turns(self):
        return sum(slot[2] for slot in self._slots())

    def _slots(self):
        return list(SLOT.iter_unpack(self._room[:]))

    def close(self):
        self._room.close()
        self._file.close()
