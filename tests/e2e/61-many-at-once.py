# SPDX-License-Identifier: Apache-2.0
"""Thousands of requests in flight at once, of every signal, over every protocol: as long as no
configured limit is reached, no request is refused."""

import contextlib
import resource
import selectors
import signal
import socket
import threading
import time

import h2.config
import h2.connection
import h2.events
from support import case, client, metrics, otlp, process, profiles
from support.client import PROTOBUF, SERVICES, grpc_frame
from support.ports import free_port

CONNECTIONS, STREAMS = 25, 100  # of each signal; so many streams a connection may have
HTTP1_CONNECTIONS = 200  # of each signal
RESPONSES_WITHIN_S = 120
RING_HURRY = 256  # requests in a ring after which no other socket is read first
SIGNALS = ("traces", "metrics", "logs", "profiles")
PATHS = {name: f"/v1/{name}" for name in SERVICES} | {"profiles": profiles.PATH}
METHODS = SERVICES | {"profiles": profiles.SERVICE}


def bodies():
    """One small request of each signal."""
    sample = profiles.Builder().profile("cpu:nanoseconds", ("cpu:nanoseconds", 1))
    sample.sample(["leaf", "main"], 1)
    return {
        "traces": otlp.traces(1).SerializeToString(),
        "metrics": otlp.metrics(1).SerializeToString(),
        "logs": otlp.logs(1).SerializeToString(),
        "profiles": sample.bytes(),
    }


@contextlib.contextmanager
def descriptors(soft):
    """For processes that are started meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Http2:
    """One connection with all its requests written at once; `statuses` of the responses."""

    @staticmethod
    def encode(headers, body):
        """STREAMS requests, the same for every connection that begins with them."""
        connection = h2.connection.H2Connection(
            h2.config.H2Configuration(header_encoding="utf-8")
        )
        connection.initiate_connection()
        for number in range(STREAMS):
            connection.send_headers(2 * number + 1, headers)
            connection.send_data(2 * number + 1, body, end_stream=True)
        return connection.data_to_send()

    def __init__(self, port, headers, body, encoded):
        self.connection = h2.connection.H2Connection(
            h2.config.H2Configuration(header_encoding="utf-8")
        )
        self.connection.initiate_connection()
        for number in range(STREAMS):
            self.connection.send_headers(2 * number + 1, headers)
            self.connection.send_data(2 * number + 1, body, end_stream=True)
        self.connection.data_to_send()
        self.statuses = {}
        self.ended = 0
        self.socket = socket.create_connection(("127.0.0.1", port), RESPONSES_WITHIN_S)
        self.socket.sendall(encoded)

    def read(self):
        """False: every request has its response, or the peer has gone."""
        data = self.socket.recv(1 << 18)
        for event in self.connection.receive_data(data) if data else ():
            if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                fields = dict(event.headers)
                status = fields.get("grpc-status") or fields[":status"]
                self.statuses[event.stream_id] = status
            elif isinstance(event, h2.events.StreamReset):
                self.statuses[event.stream_id] = f"reset {event.error_code}"
            self.ended += isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset))
        if not data or self.ended == STREAMS:
            return False
        self.socket.sendall(self.connection.data_to_send())
        return True


class Http1:
    """One connection with one request."""

    def __init__(self, port, path, media, body):
        self.response = b""
        self.socket = socket.create_connection(("127.0.0.1", port), RESPONSES_WITHIN_S)
        self.socket.sendall(
            f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: {media}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
        )

    def read(self):
        data = self.socket.recv(65536)
        self.response += data
        return bool(data)

    @property
    def statuses(self):
        words = self.response.split(b" ", 2)
        return {0: words[1].decode() if len(words) > 1 else "none"}


def read_all(connections):
    """Waits for all responses and counts them by status."""
    counts = {}
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
        deadline = time.monotonic() + RESPONSES_WITHIN_S
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"{len(selector.get_map())} connections wait for responses")
            for key, _ in selector.select(left):
                if not key.data.read():
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
    for connection in connections:
        for status in connection.statuses.values():
            counts[status] = counts.get(status, 0) + 1
    return counts


class Many(case.Case):
    def start(self, lanes=1, soft=4096, batch="", exporter=""):
        self.back_end = self.sink()
        self.grpc_port, self.http, self.pyroscope, self.port = (free_port() for _ in range(4))
        pipelines = "".join(
            f"    {name}:\n      receivers: [otlp{', pyroscope' if name == 'profiles' else ''}]\n"
            "      processors: [memory_limiter, batch]\n      exporters: [otlp_http]\n"
            for name in SIGNALS
        )
        text = (
            "receivers:\n  otlp:\n    protocols:\n"
            f"      grpc: {{endpoint: '127.0.0.1:{self.grpc_port}'}}\n"
            f"      http: {{endpoint: '127.0.0.1:{self.http}'}}\n"
            f"  pyroscope: {{endpoint: '127.0.0.1:{self.pyroscope}'}}\n"
            "processors:\n  memory_limiter: {check_interval: 1s, limit_mib: 400}\n"
            f"  batch: {{{batch}}}\n"
            f"exporters:\n  otlp_http:\n    endpoint: {self.back_end.url}\n{exporter}"
            + case.UNCOMPRESSED
            + f"service:\n  lanes: {lanes}\n{case.metrics_service(self.port)}"
            f"  pipelines:\n{pipelines}"
        )
        with descriptors(soft):
            self.process = self.daemon(text)
        return self.process

    def assert_nothing_was_lost(self, expected):
        """Each signal's items are delivered, and none was refused on the way."""

        def is_delivered():
            seen = metrics.Metrics(self.port)
            return all(
                seen.sum("spanflame_items_delivered", signal=name) == count
                for name, count in expected.items()
            )

        process.poll_until(is_delivered, RESPONSES_WITHIN_S, f"{expected} delivered")
        for name, count in expected.items():
            figures = metrics.assert_conserved(self, self.port, name)
            self.assertEqual(figures, (count, count, 0, 0, 0))
        seen = metrics.Metrics(self.port)
        self.assertEqual(seen.sum("spanflame_ring_refusals"), 0)
        self.assertEqual(seen.sum("spanflame_budget_refusals"), 0)

    def over_http2(self, port, requests):
        """requests: headers and body by signal. The daemon finds all of them when it wakes up."""
        connections = []
        self.process.signal(signal.SIGSTOP)
        for headers, body in requests.values():
            encoded = Http2.encode(headers, body)
            connections += [Http2(port, headers, body, encoded) for _ in range(CONNECTIONS)]
        self.process.signal(signal.SIGCONT)
        return read_all(connections)

    @staticmethod
    def headers(path, media):
        return [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "localhost"),
            ("content-type", media),
            ("te", "trailers"),
        ]

    def test_ten_thousand_streams_of_grpc(self):
        for lanes in (1, 2):
            with self.subTest(lanes=lanes):
                self.start(lanes)
                requests = {
                    name: (self.headers(METHODS[name], "application/grpc"), grpc_frame(body))
                    for name, body in bodies().items()
                }
                counts = self.over_http2(self.grpc_port, requests)
                self.assertEqual(counts, {"0": len(SIGNALS) * CONNECTIONS * STREAMS})
                self.assert_nothing_was_lost(dict.fromkeys(SIGNALS, CONNECTIONS * STREAMS))
                # A long ring is drained before the next connection is read.
                seen = metrics.Metrics(self.port)
                for name in SIGNALS:
                    longest = seen.sum("spanflame_ring_high_water", ring="pipeline", owner=name)
                    self.assertLess(longest, lanes * (RING_HURRY + STREAMS))

    def test_ten_thousand_streams_of_http2(self):
        self.start()
        requests = {
            name: (self.headers(PATHS[name], PROTOBUF), body) for name, body in bodies().items()
        }
        counts = self.over_http2(self.http, requests)
        self.assertEqual(counts, {"200": len(SIGNALS) * CONNECTIONS * STREAMS})
        self.assert_nothing_was_lost(dict.fromkeys(SIGNALS, CONNECTIONS * STREAMS))

    def test_thousands_of_uploads_to_pyroscope(self):
        self.start()
        now = int(time.time())
        path = f"/ingest?name=app&from={now - 10}&until={now}&format=folded"
        requests = {"profiles": (self.headers(path, "text/plain"), b"a;b 1\n")}
        counts = self.over_http2(self.pyroscope, requests)
        self.assertEqual(counts, {"200": CONNECTIONS * STREAMS})
        self.assert_nothing_was_lost({"profiles": CONNECTIONS * STREAMS})

    def test_more_connections_than_the_soft_limit_of_descriptors(self):
        """Like any Go program, the daemon raises its soft limit to the hard limit."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard < 3 * len(SIGNALS) * HTTP1_CONNECTIONS:
            self.skipTest(f"the hard limit of descriptors is {hard}")
        self.start(soft=256)
        connections = [
            Http1(self.http, PATHS[name], PROTOBUF, body)
            for name, body in bodies().items()
            for _ in range(HTTP1_CONNECTIONS)
        ]
        self.assertEqual(read_all(connections), {"200": len(SIGNALS) * HTTP1_CONNECTIONS})
        self.assert_nothing_was_lost(dict.fromkeys(SIGNALS, HTTP1_CONNECTIONS))

    def test_a_slow_back_end_without_a_queue_keeps_senders_waiting(self):
        """No limit is met while an export is merely slow."""
        self.start(batch="send_batch_size: 10", exporter=case.DIRECT)
        self.back_end.hold()
        body = grpc_frame(bodies()["traces"])
        headers = self.headers(METHODS["traces"], "application/grpc")
        encoded = Http2.encode(headers, body)
        connections = [
            Http2(self.grpc_port, headers, body, encoded) for _ in range(CONNECTIONS)
        ]
        # 16 batches are under way and one is gathered: the others wait.
        process.poll_until(
            lambda: metrics.Metrics(self.port).sum("spanflame_items_received", signal="traces")
            == CONNECTIONS * STREAMS,
            RESPONSES_WITHIN_S,
            "all received",
        )
        self.back_end.release()
        self.assertEqual(read_all(connections), {"0": CONNECTIONS * STREAMS})
        self.assert_nothing_was_lost({"traces": CONNECTIONS * STREAMS})


    def test_reloads_refuse_no_request(self):
        """Requests that arrive during a reload all get their response."""
        daemon = self.start()
        body, results, stop = otlp.traces(1).SerializeToString(), [], threading.Event()

        def send():
            connection = client.GrpcClient(self.grpc_port)
            while not stop.is_set():
                results.append(connection.export("traces", body))
            connection.close()

        senders = [threading.Thread(target=send) for _ in range(8)]
        for sender in senders:
            sender.start()
        for number in range(3):
            seen = len(results)
            process.poll_until(lambda: len(results) > seen + 100, 60, "more responses")
            daemon.signal(signal.SIGHUP)
            process.poll_until(
                lambda: daemon.log().count(process.READY) == number + 2, 60, "the new service"
            )
        stop.set()
        for sender in senders:
            sender.join()
        self.assertEqual(set(results), {("OK", "")})


if __name__ == "__main__":
    case.main()
