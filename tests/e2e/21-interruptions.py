# SPDX-License-Identifier: Apache-2.0
"""Reloads and stops during handshakes, requests, responses and gRPC streams."""

import contextlib
import importlib
import json
import signal
import socket
import ssl
import threading
import time

from support import case, certificates, client, otlp, process
from support.ports import free_port

bombs = importlib.import_module("61-memory-bombs")
holds = importlib.import_module("62-lane-holds")

TIMEOUT_S = 30
SPANS = otlp.traces(1).SerializeToString()
SETTINGS = b"\0\0\0\4\0\0\0\0\0"
# One series of one pprof profile with one sample.
PUSH = (
    b"\x0a\x2e\x0a\x0f\x0a\x08__name__\x12\x03cpu\x12\x1b\x0a\x19"
    b"\x0a\x04\x08\x01\x10\x02\x12\x03\x12\x01\x05\x32\x00\x32\x03cpu\x32\x05count"
)
CONFIG = """receivers:
  otlp:
    protocols:
      http: {{endpoint: '127.0.0.1:{http}', tls: {tls}}}
      grpc: {{endpoint: '127.0.0.1:{grpc}', tls: {tls}}}
  pyroscope: {{endpoint: '127.0.0.1:{pyroscope}', tls: {tls}}}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{backend}
    tls: {{insecure: true}}
    timeout: {timeout}
    compression: none
    sending_queue: {{enabled: false}}
    retry_on_failure: {{enabled: false}}
service:
  lanes: 2
  drain_timeout: {drain}
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [otlp_grpc]}}
    profiles: {{receivers: [pyroscope], exporters: [otlp_grpc]}}
"""


class MuteBackend:
    """Accepts HTTP/2 connections and their streams, and never responds."""

    def __init__(self, port):
        self.listener = socket.create_server(("127.0.0.1", port))
        self.connections = []
        self.received = []  # by connection
        self.changed = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                connection.sendall(SETTINGS)
                self.received.append(bytearray())
                arguments = (connection, self.received[-1])
                threading.Thread(target=self._read, args=arguments, daemon=True).start()

    def _read(self, connection, received):
        with contextlib.suppress(OSError):
            while data := connection.recv(65536):
                with self.changed:
                    received.extend(data)
                    self.changed.notify_all()

    def count(self, part):
        return sum(received.count(part) for received in self.received)

    def wait_for(self, part, count):
        with self.changed:
            if not self.changed.wait_for(lambda: self.count(part) >= count, TIMEOUT_S):
                raise AssertionError(f"the back-end did not see {part} {count} times")

    def close(self):
        self.listener.close()
        for connection in self.connections:
            connection.close()


def post(path, media, body):
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


class Interruptions(case.Case):
    def setUp(self):
        files = certificates.Certificates(self)
        self.context = ssl.create_default_context(cafile=files.path("ca.pem"))
        self.ports = {name: free_port() for name in ("http", "grpc", "pyroscope", "backend")}
        self.backend = MuteBackend(self.ports["backend"])
        self.addCleanup(self.backend.close)
        self.tls = (
            f"{{cert_file: {files.path('server.pem')}, key_file: {files.path('server.key')}}}"
        )
        self.sockets = []

    def start(self, timeout="1s", drain="60s"):
        """timeout: after which requests at the back-end are given up."""
        self.server = self.daemon(
            CONFIG.format(tls=self.tls, timeout=timeout, drain=drain, **self.ports),
            arguments=["--feature-gates=service.profilesSupport"],
        )

    def tearDown(self):
        for one in self.sockets:
            one.close()

    def connect(self, port):
        plain = socket.create_connection(("127.0.0.1", self.ports[port]), TIMEOUT_S)
        self.sockets.append(plain)
        return plain

    def begin_handshake(self, port, size):
        """The first bytes of a ClientHello."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        shaking = self.context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with contextlib.suppress(ssl.SSLWantReadError):
            shaking.do_handshake()
        plain = self.connect(port)
        plain.sendall(outgoing.read()[:size])
        return plain

    def say(self, port, data):
        stream = self.context.wrap_socket(self.connect(port), server_hostname="localhost")
        self.sockets.append(stream)
        stream.sendall(data)
        return stream

    def hang(self):
        """Clients that stall at every stage, and two whose requests are at the back-end."""
        traces = post("/v1/traces", client.PROTOBUF, SPANS)
        push = post("/push.v1.PusherService/Push", "application/proto", PUSH)
        for port in ("http", "grpc", "pyroscope"):
            self.connect(port)
            self.begin_handshake(port, 1)
            self.begin_handshake(port, 100)
            self.begin_handshake(port, None)
            self.say(port, b"PO")
        self.say("http", traces[:-3])
        self.say("pyroscope", push[:-3])
        before = {part: self.backend.count(part) for part in (SPANS, b"cpu")}
        waiting = [self.say("http", traces), self.say("pyroscope", push)]
        for part, count in before.items():
            self.backend.wait_for(part, count + 1)
        return waiting

    def assert_reported(self, stream):
        """The status tells the client to retry."""
        self.assertIn(stream.recv(4096).split(b" ")[1], (b"503", b"504"))

    def assert_serves(self):
        ready = self.say("pyroscope", b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(ready.recv(4096).split(b" ")[1], b"200")

    def wait_for_starts(self, count):
        process.poll_until(
            lambda: self.server.log().count(process.READY) == count,
            process.READY_WITHIN_S,
            f"start {count}",
        )

    def test_reloads(self):
        self.start()
        for reloads in (1, 2):
            waiting = self.hang()
            self.server.signal(signal.SIGHUP)
            self.wait_for_starts(1 + reloads)
            for stream in waiting:
                self.assert_reported(stream)
            self.assert_serves()

    def test_a_reload_that_cannot_end_in_time_begins_anew(self):
        self.start(timeout="0s", drain="1s")
        waiting = self.hang()
        self.server.signal(signal.SIGHUP)
        self.wait_for_starts(2)
        for stream in waiting:
            self.assertEqual(stream.recv(4096), b"")
        self.assertIn("Restarting the process", self.server.log())
        self.assert_serves()

    def test_a_stop(self):
        self.start()
        waiting = self.hang()
        self.assertEqual(self.server.stop(), 0)
        for stream in waiting:
            self.assert_reported(stream)

    def test_a_stop_while_a_reload_waits(self):
        self.start()
        self.hang()
        self.server.signal(signal.SIGHUP)
        self.server.wait_for_line("Starting shutdown")
        self.assertEqual(self.server.stop(), 0)

    def test_clients_that_disconnect_before_their_response(self):
        self.start()
        for stream in self.hang():
            stream.close()
        self.tearDown()
        self.assert_serves()
        self.assertEqual(self.server.stop(), 0)


# Every stage that the lane's helper works for: the receivers, JSON both ways, both processors, the
# pyroscope exporter.
HELPED = """receivers:
  otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{http}'}}}}}}
  pyroscope: {{endpoint: '127.0.0.1:{pyroscope}'}}
processors:
  resource: {{attributes: [{{action: upsert, key: added, value: text}}]}}
  profile_limits: {{max_stack_depth: 100}}
exporters:
  otlp_http: {{endpoint: '{backend}', encoding: json}}
  pyroscope: {{endpoint: '{backend}'}}
service:
  lanes: 2
  drain_timeout: {drain}
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], processors: [resource], exporters: [otlp_http]}}
    profiles: {{receivers: [pyroscope], processors: [profile_limits], exporters: [pyroscope]}}
"""
MANY_SPANS = bombs.message(1, bombs.message(2, bombs.message(2, b"\x2a\x05hello") * 300000))
MANY_NAMES = json.dumps(
    {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "hello"}] * 100000}]}]}
).encode()


class ForcedStops(case.Case):
    """The process ends at once and cleanly, without waiting for helpers."""

    def start(self, drain):
        self.back_end = self.sink()
        self.http, self.pyroscope = free_port(), free_port()
        config = HELPED.format(
            http=self.http, pyroscope=self.pyroscope, backend=self.back_end.url, drain=drain
        )
        return self.server(config).wait_until_ready()

    def send_large_requests(self):
        """Several of each kind; returns when every byte is on its way."""
        now = int(time.time())
        ingest = f"/ingest?name=app&from={now - 10}&until={now}&format="
        stacks = b"".join(b"main;work;f%d 1\n" % i for i in range(100000))
        for port, path, kind, body in (
            (self.http, "/v1/traces", "application/x-protobuf", MANY_SPANS),
            (self.http, "/v1/traces", "application/json", MANY_NAMES),
            (self.pyroscope, ingest + "folded", "text/plain", stacks),
            (self.pyroscope, ingest + "pprof", "text/plain", holds.pprof(300000)),
        ):
            for _ in range(2):
                connection = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
                self.addCleanup(connection.close)
                head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
                connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
                connection.sendall(body)

    def check_end(self, server):
        self.assertEqual(server.wait(within=TIMEOUT_S), 0)
        log = server.log()
        self.assertIn("Shutdown was cut short", log)
        self.assertNotIn("Sanitizer", log)
        self.assertNotIn("runtime error", log)

    def test_the_drain_ends_while_helpers_work(self):
        for drain in ("1ms", "20ms", "100ms", "300ms"):
            with self.subTest(drain=drain):
                server = self.start(drain)
                self.back_end.hold()
                self.send_large_requests()
                server.signal(signal.SIGTERM)
                self.check_end(server)
                self.back_end.release()

    def test_a_later_interrupt_ends_it_while_helpers_work(self):
        server = self.start("120s")
        self.back_end.hold()
        self.send_large_requests()
        server.signal(signal.SIGTERM)
        server.wait_for_line("Starting shutdown")

        def has_ended():
            if server.process.poll() is None:
                server.signal(signal.SIGINT)
            return server.process.poll() is not None

        process.poll_until(has_ended, TIMEOUT_S, "the end after more interrupts")
        self.check_end(server)
        self.back_end.release()

    def test_a_reload_cut_short_begins_anew(self):
        server = self.start("20ms")
        self.back_end.hold()
        self.send_large_requests()
        server.signal(signal.SIGHUP)
        server.wait_for_line("Restarting the process", TIMEOUT_S)
        process.poll_until(
            lambda: server.log().count(process.READY) == 2, TIMEOUT_S, "the second start"
        )
        self.back_end.release()
        self.assertEqual(client.post(self.http, "traces", SPANS).status, 200)
        self.assertEqual(server.stop(), 0)
        self.assertNotIn("Sanitizer", server.log())


if __name__ == "__main__":
    case.main()
