# SPDX-License-Identifier: Apache-2.0
"""A real Zipkin server on loopback that keeps spans in memory."""

import json
import urllib.error
import urllib.parse
import urllib.request

from . import peers, process
from .ports import free_port
from .program import Program

STORED_WITHIN_S = 60
ASK_WITHIN_S = 30


class Server:
    def __init__(self):
        command = peers.zipkin_server()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        # Its own setting, QUERY_PORT, would listen on all addresses.
        listen = [
            "--armeria.ports[0].ip=127.0.0.1",
            f"--armeria.ports[0].port={port}",
            "--armeria.ports[0].protocols[0]=HTTP",
        ]
        self._program = Program(command + listen, f"{self.url}/health")
        self.close = self._program.close

    def ask(self, path, **parameters):
        """None: not there."""
        url = f"{self.url}/api/v2/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=ASK_WITHIN_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise AssertionError(f"{url}: {error.code} {error.read().decode()}")

    def wait_for_trace(self, trace_id, spans):
        """The trace, when it has so many spans."""
        found = []

        def is_stored():
            found[:] = self.ask(f"trace/{trace_id}") or []
            return len(found) >= spans

        process.poll_until(is_stored, STORED_WITHIN_S, f"{spans} spans of {trace_id} in Zipkin")
        return list(found)
