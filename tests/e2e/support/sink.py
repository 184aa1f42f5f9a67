# SPDX-License-Identifier: Apache-2.0
"""A back-end that keeps what it is sent and responds as a script says."""

import gzip
import http.server
import ssl
import threading
from dataclasses import dataclass

from . import snappy

WAIT_S = 60
DECODERS = {"gzip": gzip.decompress, "snappy": snappy.decode}
PATHS = {"/v1/traces": "traces", "/v1/metrics": "metrics", "/v1/logs": "logs"}


@dataclass
class Received:
    """One request: `body` as it came, `payload` after decompression."""

    path: str
    headers: dict
    body: bytes
    payload: bytes
    status: int

    @property
    def signal(self):
        return PATHS.get(self.path, self.path)


@dataclass
class Reply:
    status: int = 200
    headers: dict = None
    body: bytes = b""


def read_body(stream, headers):
    """The request's body; `headers` by lower-case name."""
    if headers.get("transfer-encoding") != "chunked":
        return stream.read(int(headers.get("content-length", 0)))
    body = b""
    while size := int(stream.readline().split(b";")[0], 16):
        body += stream.read(size)
        stream.readline()
    stream.readline()
    return body


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A daemon that is killed resets its connections: nothing to print."""


class Sink:
    """Serves until closed, over TLS when it has a certificate and its key (files). Responds with the
    reply for the path, else the next of the script, else `otherwise`."""

    def __init__(
        self, port, script=(), otherwise=None, by_path=None, certificate=None, key=None
    ):
        self.port = port
        self._scheme = "https" if certificate else "http"
        self.requests = []
        self._by_path = by_path or {}
        self._script = list(script)
        self._otherwise = otherwise or Reply()
        self._changed = threading.Condition()
        self._open = threading.Event()
        self._open.set()
        self._server = _Server(("127.0.0.1", port), self._handler())
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self):
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def hold(self):
        """Requests are read; their responses wait for release()."""
        self._open.clear()

    def release(self):
        self._open.set()

    def respond_with(self, reply):
        """From now on, once the script is used up."""
        with self._changed:
            self._otherwise = reply

    def respond_first(self, script):
        """These in turn, before what respond_with() says."""
        with self._changed:
            self._script = list(script)

    def wait(self, predicate, within=WAIT_S):
        """Until predicate(requests) holds; returns the requests."""
        with self._changed:
            if not self._changed.wait_for(lambda: predicate(self.requests), within):
                seen = [(r.path, r.status, len(r.payload)) for r in self.requests]
                raise AssertionError(f"the back-end never got what it waited for, only {seen}")
            return list(self.requests)

    def wait_for_requests(self, count, within=WAIT_S):
        return self.wait(lambda requests: len(requests) >= count, within)

    def accepted(self, signal=None):
        """Requests that got 2xx."""
        with self._changed:
            return [
                request
                for request in self.requests
                if 200 <= request.status < 300 and signal in (None, request.signal)
            ]

    def close(self):
        self._open.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _take(self, path, headers, body):
        plain = DECODERS.get(headers.get("content-encoding"), bytes)(body)
        self._open.wait(WAIT_S)
        with self._changed:
            reply = self._by_path.get(path)
            if reply is None:
                reply = self._script.pop(0) if self._script else self._otherwise
            self.requests.append(Received(path, headers, body, plain, reply.status))
            self._changed.notify_all()
        return reply

    def _handler(self):
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = read_body(self.rfile, headers)
                reply = sink._take(self.path, headers, body)
                self.send_response(reply.status)
                for name, value in (reply.headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *arguments):
                """Quiet: failures print what is needed."""

        return Handler
