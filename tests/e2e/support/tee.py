# SPDX-License-Identifier: Apache-2.0
"""Stands between a client and the daemon: keeps what the client sent and passes it on unchanged."""

import gzip
import http.server
import threading
from concurrent import futures

import grpc

from . import client
from .sink import read_body

PASSED_ON = ("Content-Type", "Content-Encoding", "Transfer-Encoding", "User-Agent")
MAX_MESSAGE = 64 << 20
SIGNALS = {service: signal for signal, service in client.SERVICES.items()}


class _Tee:
    """What both have: the requests as (signal, payload), in the order of their arrival."""

    def __init__(self):
        self._lock = threading.Lock()
        self._seen = []

    def keep(self, signal, payload):
        with self._lock:
            self._seen.append((signal, payload))

    def seen(self):
        with self._lock:
            return list(self._seen)


class HttpTee(_Tee):
    def __init__(self, port, target):
        super().__init__()
        tee = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = read_body(self.rfile, headers)
                kept = {name: self.headers[name] for name in PASSED_ON if self.headers[name]}
                plain = gzip.decompress(body) if "Content-Encoding" in kept else body
                tee.keep(self.path.rpartition("/")[2], plain)
                response = client.request(target, "POST", self.path, body, kept)
                self.send_response(response.status)
                self.send_header("Content-Type", response.headers.get("content-type", ""))
                self.send_header("Content-Length", str(len(response.body)))
                self.end_headers()
                self.wfile.write(response.body)

            def log_message(self, *arguments):
                """Quiet: failures print what is needed."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class GrpcTee(_Tee, grpc.GenericRpcHandler):
    """grpcio inflates what the client compressed; it goes on compressed in the same way."""

    def __init__(self, port, target):
        super().__init__()
        self._client = client.GrpcClient(target)
        self._server = grpc.server(
            futures.ThreadPoolExecutor(4),
            handlers=[self],
            options=[("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.so_reuseport", 0)],
        )
        self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    def service(self, handler_call_details):
        signal = SIGNALS[handler_call_details.method]
        metadata = dict(handler_call_details.invocation_metadata)
        compressed = metadata.get("grpc-encoding") == "gzip"

        def export(message, context):
            self.keep(signal, message)
            code, text = self._client.export(signal, message, compressed)
            if code != "OK":
                context.abort(grpc.StatusCode[code], text)
            return b""

        return grpc.unary_unary_rpc_method_handler(export)

    def close(self):
        self._server.stop(None).wait()
        self._client.close()
