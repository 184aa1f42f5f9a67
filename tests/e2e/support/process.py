# SPDX-License-Identifier: Apache-2.0
"""A server under test: spanflame, or the Go collector, run with a configuration text."""

import os
import re
import signal
import subprocess
import tempfile
import threading
import time

READY = "Everything is ready"
READY_WITHIN_S = 60  # sanitizers on two busy cores
STOP_WITHIN_S = 60
LAST_LINES = 20  # of a log, in a failure: why a server ended stands there


def binary():
    """The daemon that ctest (or the caller) names."""
    path = os.environ.get("SPANFLAME")
    if not path:
        raise RuntimeError("set SPANFLAME to the daemon's path, as ctest does")
    return path


def is_sanitized():
    """Sanitizers make time and memory figures meaningless."""
    return bool(os.environ.get("SPANFLAME_SANITIZERS"))


class Server:
    """One running process. Its stderr is read by a thread, so that waiting is for a line."""

    def __init__(self, config, executable=None, arguments=(), environment=None):
        self.directory = tempfile.TemporaryDirectory(prefix="spanflame-e2e-")
        self.config_path = os.path.join(self.directory.name, "config.yaml")
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(config)
        self.lines = []
        self._changed = threading.Condition()
        self._is_closed = False
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            [executable or binary(), f"--config={self.config_path}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **(environment or {})},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def log(self):
        with self._changed:
            return "\n".join(self.lines)

    def last_lines(self):
        return "\n".join(self.log().split("\n")[-LAST_LINES:])

    def wait_for_line(self, pattern, within=READY_WITHIN_S):
        """The first line that matches, past or to come; fails when the process ends without it."""
        expression = re.compile(pattern)

        def find():
            return next((line for line in self.lines if expression.search(line)), None)

        with self._changed:
            self._changed.wait_for(lambda: find() or self._is_closed, within)
            line = find()
        if line is None:
            raise AssertionError(f"no log line matches {pattern!r}; the log ended with:\n{self.last_lines()}")
        return line

    def wait_until_ready(self):
        self.wait_for_line(READY)
        return self

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, within=STOP_WITHIN_S):
        """The exit code."""
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"did not end within {within} s; the log ended with:\n{self.last_lines()}")
        self._reader.join(within)
        return code

    def stop(self, within=STOP_WITHIN_S):
        """SIGTERM, and the exit code."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait(within)

    def close(self):
        """Ends it in any state and removes its files."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stderr.close()
        self.directory.cleanup()

    def rss_kib(self):
        """Resident memory now, and its peak."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            status = file.read()
        now, peak = (
            int(re.search(rf"^{key}:\s+(\d+)", status, re.M).group(1)) for key in ("VmRSS", "VmHWM")
        )
        return now, peak


def poll_until(predicate, within, what):
    """For what has no event to wait for, as /proc; fails when `what` did not come about in time."""
    deadline = time.monotonic() + within
    pause = threading.Event()
    while not predicate():
        if time.monotonic() > deadline:
            raise AssertionError(f"never within {within} s: {what}")
        pause.wait(0.05)


def run(*arguments, environment=None, within=STOP_WITHIN_S):
    """Runs the daemon to its end, as for `validate`."""
    return subprocess.run(
        [binary(), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=within,
        env={**os.environ, **(environment or {})},
    )
