# SPDX-License-Identifier: Apache-2.0
"""A server of another project, which a test runs and ends."""

import subprocess
import tempfile
import urllib.request

from . import process

READY_WITHIN_S = 120  # a JVM on two busy cores
STOP_WITHIN_S = 30


class Program:
    """Runs the command; returns from the constructor when `url` responds with 200."""

    def __init__(self, command, url):
        self._log = tempfile.TemporaryFile("w+", errors="replace")
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT
        )
        try:
            process.poll_until(
                lambda: self._has_ended() or _is_ready(url), READY_WITHIN_S, f"{url} is ready"
            )
            if self._has_ended():
                raise AssertionError(f"{command[0]} ended")
        except AssertionError as error:
            log = self.log()
            self.close()
            raise AssertionError(f"{error}; its log was:\n{log}")

    def _has_ended(self):
        return self._process.poll() is not None

    def log(self):
        self._log.seek(0)
        return self._log.read()

    def close(self):
        """Ends it in any state."""
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def _is_ready(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False
