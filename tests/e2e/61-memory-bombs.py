# SPDX-License-Identifier: Apache-2.0
"""Few bytes that would become many: each request is rejected or refused within the budget."""

import gzip
import os
import socket
import struct
import threading
import time

from support import case, client, process
from support.ports import free_port

INGEST = f"/ingest?name=app&from={int(time.time()) - 10}&until={int(time.time())}&format=groups"
BUDGET_MIB = 64
RSS_SLACK = 1.15
TIMES = 1 if process.is_sanitized() else 3
SHARE = 5 if process.is_sanitized() else 1  # of what takes long: memory is not measured then
MIB = 1 << 20
PROFILES = "/v1development/profiles"
METHOD = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
JSON = "application/json"
CONNECTIONS, STREAMS = 60, 100
SENDERS = 8  # at once
HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 1, 3, 4, 6, 7  # frames
REASONS = b"no memory for header fields", b"too_many_waiting_frames"  # of a GOAWAY
ACK, END_HEADERS = 1, 4
LATER, NEVER, TAKEN = 503, 413, 200

PIPELINES = """
processors:
  trace_profile_join:
    hold: 1s
    attributes: [span_name, span.http.route]
    count_for: [span, root, ancestors]
    mark: all
{join}    index: {{bytes: 1MiB}}
    links:
      profile: "http://ui/{{trace_id}}/{{span_id}}/and/what/else/a/url/has"
      trace: "http://ui/{{trace_id}}"
  profile_limits:
    max_stack_depth: 100
  resource:
    attributes:
      - {{action: upsert, key: added, value: text}}
  batch: {{timeout: 100ms{batch}}}
exporters:
  debug: {{verbosity: detailed}}
  otlphttp:
    endpoint: {backend}
    {otlphttp}
  pyroscope:
    endpoint: {backend}
service:
  budget_mib: {budget}
  telemetry:
    metrics:
      level: none
  pipelines:
    traces:
      receivers: [otlp]
      processors: [resource, trace_profile_join, batch]
      exporters: [debug, otlphttp]
    metrics:
      receivers: [otlp]
      processors: [resource, batch]
      exporters: [debug, otlphttp]
    logs:
      receivers: [otlp]
      processors: [resource, batch]
      exporters: [debug, otlphttp]
    profiles:
      receivers: [otlp, pyroscope]
      processors: [resource, profile_limits, trace_profile_join, batch]
      exporters: [debug, otlphttp, pyroscope]
"""


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def message(number, *parts):
    content = b"".join(parts)
    return varint(number << 3 | 2) + varint(len(content)) + content


def number(field, value):
    return varint(field << 3) + varint(value)


def profile(*samples):
    return message(1, message(2, message(2, *samples)))


# One string of a MiB, and entry 1 of everything that the sample uses.
TEXT = message(5) + message(5, b"x" * MIB)
SAMPLE = message(2, number(1, 1), number(2, 1), number(4, 5))
REFERENCE = number(8, 1)


def references(count):
    """Attributes by reference to the same string."""
    value = message(2, REFERENCE)
    entries = b"".join(message(6, number(1, i % 2), value) for i in range(count))
    return profile(SAMPLE) + message(2, TEXT, message(7), message(7), entries)


def nested_references(count):
    value = message(2, message(5, message(1, REFERENCE) * count))
    entries = message(6) + message(6, number(1, 1), value)
    return profile(SAMPLE) + message(2, TEXT, message(7), message(7), entries)


def resource_references(count):
    attribute = message(1, number(3, 1), message(2, REFERENCE))
    return message(1, message(1, attribute * count), message(2, message(2))) + message(2, TEXT)


def empty_entries(count):
    tables = b"".join(message(table) * count for table in range(1, 8))
    return profile(SAMPLE) + message(2, tables)


def empty_profiles(count):
    return message(1, message(2, message(2) * count)) + message(2, message(5) * 2)


def long_stack(count):
    """One stack of the same location again and again, which an exporter spells out."""
    tables = (
        message(2) + message(2, message(3, number(1, 1))) + message(3) + message(3, number(1, 1))
    )
    stack = message(7) + message(7, message(1, b"\x01" * count))
    return profile(SAMPLE * 50) + message(2, tables, message(5), message(5, b"f"), stack)


def spelt_stacks(count):
    """Layout 1.7: every sample names most of one list of locations."""
    locations = 200000
    samples = b"".join(
        message(2, number(1, i), number(2, locations - count), message(3, b"\x05"))
        for i in range(count)
    )
    types = message(1, number(1, 1), number(3, 1))
    one = message(2, types, samples, message(3, b"\x00\x01" * (locations // 2)))
    return message(1, message(2, one)) + message(2, message(2) * 2, message(5) * 2)


def spans(count):
    """Two bytes each."""
    return message(1, message(2, message(2) * count))


def attributes(count):
    return message(1, message(2, message(2, message(9) * count)))


def resources(count):
    return message(1) * count + spans(1)


def scopes(count):
    return message(1, message(2, message(2)) * count)


def values(count):
    """A list of empty values."""
    return message(
        1, message(2, message(2, message(9, message(2, message(5, message(1) * count)))))
    )


def numbered_spans(count, name=b""):
    """Spans with their ids, which are marked and indexed."""
    return message(
        1,
        message(
            2,
            b"".join(
                message(
                    2,
                    message(1, struct.pack(">QQ", 1, i)),
                    message(2, struct.pack(">Q", i)),
                    message(5, name) if name else b"",
                )
                for i in range(1, count + 1)
            ),
        ),
    )


def small_resources(count):
    resource = message(1, message(1, message(1, b"service.name"), message(2, message(1, b"s"))))
    return message(1, resource, message(2, numbered_spans(1)[4:])) * count


def buckets(count):
    """An exponential histogram."""
    point = message(1, message(8, message(2, b"\x01" * count)))
    return message(1, message(2, message(2, message(10, point))))


def bodies(count, size):
    return message(1, message(2, message(2, message(5, message(1, b"l" * size))) * count))


def points(count):
    return message(1, message(2, message(2, message(5, message(1) * count))))


def records(count):
    return message(1, message(2, message(2) * count))


def hpack(prefix, text):
    """A literal of up to 16 KB behind its prefix."""
    if len(text) < 127:
        return prefix + bytes([len(text)]) + text
    return prefix + b"\x7f" + varint(len(text) - 127) + text


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def linked_samples(count):
    """A sample and a link for each; count_for makes three of every one."""
    samples = b"".join(
        message(2, number(1, 1), number(3, i + 1), number(4, 5)) for i in range(count)
    )
    links = b"".join(
        message(
            4, message(1, struct.pack(">QQ", 1, i + 1)), message(2, struct.pack(">Q", i + 1))
        )
        for i in range(count)
    )
    kind = message(1, number(1, 1), number(2, 1))
    one = message(2, kind, samples, message(5))
    tables = message(1) + message(2) + message(3) + message(4) + links
    tables += message(5) + message(5, b"a") + message(6) + message(7) * 2
    return message(1, message(2, one)) + message(2, tables)


TABLES = message(1) + message(2) + message(3) + message(4)
KIND = message(1, number(1, 1), number(2, 1))


def labelled_samples(count):
    """Samples that name their spans by labels: these become links, and nothing refers to them."""
    ids = [b"%016x" % i for i in range(1, count + 1)]
    texts = [b"", b"span_id", b"cpu", *ids]
    attributes = [message(6, number(1, 1), message(2, message(1, text))) for text in ids]
    samples = b"".join(
        message(2, number(1, 1), message(2, varint(i)), number(4, 5)) for i in range(1, count + 1)
    )
    tables = TABLES + b"".join(message(5, text) for text in texts)
    tables += message(6) + b"".join(attributes) + message(7) * 2
    return profile(KIND, samples) + message(2, tables)


def many_profiles(count):
    one = message(2, KIND, message(2, number(1, 1), number(4, 5)))
    tables = TABLES + message(5) + message(5, b"a") + message(6) + message(7) * 2
    return message(1, message(2, one * count)) + message(2, tables)


def files(count, size):
    """Profiles in formats of their own, which only some back-ends take."""
    payload = message(9, b"other") + message(10, b"z" * size)
    one = message(2, message(2, number(1, 1), number(4, 5)), payload)
    tables = TABLES + message(5) + message(5, b"a") + message(6) + message(7) * 2
    return message(1, message(2, one * count)) + message(2, tables)


def zstd_of(head, byte, count):
    """A frame of a raw block and of blocks that repeat one byte."""
    size = 128 * 1024
    blocks = [(len(head) << 3).to_bytes(3, "little") + head]
    for i in range(0, count, size):
        some = min(size, count - i)
        blocks.append((some << 3 | 2 | (i + size >= count)).to_bytes(3, "little") + byte)
    # No checksum, no content size, a window of 2 MiB.
    return b"\x28\xb5\x2f\xfd" + b"\x00\x58" + b"".join(blocks)


def snappy_of(head, count):
    """A block: a literal, and its last two bytes again and again."""
    out = varint(len(head) + 64 * count) + bytes([len(head) - 1 << 2]) + head
    return out + b"\xfe\x02\x00" * count


def long_name(size):
    """A span with a name of as many bytes, which follow."""
    name = varint(5 << 3 | 2) + varint(size)
    span = varint(2 << 3 | 2) + varint(len(name) + size) + name
    scope = varint(2 << 3 | 2) + varint(len(span) + size) + span
    return varint(1 << 3 | 2) + varint(len(scope) + size) + scope


def spans_head(count):
    """Of as many spans of two bytes; the first one is there."""
    scope = varint(2 << 3 | 2) + varint(2 * count)
    return varint(1 << 3 | 2) + varint(len(scope) + 2 * count) + scope + message(2)


def json_of(path, element, count):
    """{"a":[{"b":[…, and at the end of the path as many elements."""
    names = path.split(".")
    head = "".join('{"%s":[' % name for name in names)
    return (head + ",".join([element] * count) + "]}" * len(names)).encode()


def push(profiles, inner):
    """Pyroscope's push: each profile is gzip inside of the request."""
    labels = message(1, message(1, b"__name__"), message(2, b"process_cpu"))
    labels += message(1, message(1, b"service_name"), message(2, b"s"))
    sample = message(2, message(1, gzip.compress(inner, 9)))
    return message(1, labels, sample * profiles)


def packed(path, body):
    """As it is sent, and its headers."""
    if path.startswith("/ingest"):  # where gzip would mean pprof
        return body, {}
    kind = JSON if body[:1] == b"{" else client.PROTOBUF
    if path.startswith("/push"):
        kind = "application/proto"
    return gzip.compress(body, 1), {"Content-Type": kind, "Content-Encoding": "gzip"}


LONG_QUEUE = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{http}"}}}}}}}}
processors: {{batch: {{send_batch_size: 1, send_batch_max_size: 1}}}}
exporters:
  otlphttp: {{endpoint: "{backend}", sending_queue: {{queue_size: 10000000}}}}
service:
  budget_mib: {budget}
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], processors: [batch], exporters: [otlphttp]}}}}
"""


SILENT = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{http}"}}}}}}}}
processors: {{batch: }}
exporters: {{otlphttp: {{endpoint: "{backend}", timeout: 2s}}}}
service:
  budget_mib: {budget}
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], processors: [batch], exporters: [otlphttp]}}}}
"""


class MemoryBombs(case.Case):
    def start(self, budget_mib=BUDGET_MIB, batch="", join="", otlphttp="encoding: json"):
        self.http, self.port, self.pyroscope = free_port(), free_port(), free_port()
        self.back_end = self.sink()
        receivers = (
            "receivers:\n  otlp:\n    protocols:\n"
            f"      grpc:\n        endpoint: 127.0.0.1:{self.port}\n"
            f"      http:\n        endpoint: 127.0.0.1:{self.http}\n"
            f"  pyroscope:\n    endpoint: 127.0.0.1:{self.pyroscope}\n"
        )
        config = receivers + PIPELINES.format(
            backend=self.back_end.url, budget=budget_mib, batch=batch, join=join, otlphttp=otlphttp
        )
        return self.daemon(config)

    def check_memory(self, daemon, what):
        peak = daemon.rss_kib()[1]
        if process.is_sanitized():
            return
        self.assertLessEqual(peak, BUDGET_MIB * 1024 * RSS_SLACK, what)

    def post(self, path, body):
        return self.send(path, *packed(path, body))

    def send(self, path, body, headers):
        port = self.pyroscope if path.startswith(("/ingest", "/push")) else self.http
        return client.request(port, "POST", path, body, headers)

    def post_packed(self, codec, body):
        headers = {"Content-Type": client.PROTOBUF, "Content-Encoding": codec}
        return client.request(self.http, "POST", "/v1/traces", body, headers)

    def check_alive(self):
        """Once what came before has left: its export may fill the budget."""
        process.poll_until(self.has_room, 30, "room again")

    def test_zstd(self):
        daemon = self.start()
        for _ in range(TIMES):
            size = 18 * MIB
            response = self.post_packed("zstd", zstd_of(long_name(size), b"n", size))
            self.assertIn(response.status, {TAKEN, LATER}, response.body[:300])
            size = 1 << 30
            response = self.post_packed("zstd", zstd_of(long_name(size), b"n", size))
            self.assertIn(response.status, {NEVER, LATER}, response.body[:300])
        self.check_memory(daemon, "zstd")
        self.check_alive()

    def test_snappy(self):
        daemon = self.start()
        for _ in range(TIMES):
            count = 20000
            body = snappy_of(spans_head(32 * count + 1), count)
            response = self.post_packed("snappy", body)
            self.assertIn(response.status, {TAKEN, LATER}, response.body[:300])
        self.check_memory(daemon, "snappy")
        self.check_alive()

    def test_grpc(self):
        daemon = self.start()
        connection = self.grpc(self.port)
        for count in (100000, 1000000):
            body = numbered_spans(count) if count < 500000 else spans(count)
            for compressed in (False, True):
                code, text = connection.export("traces", body, compressed)
                self.assertIn(code, {"OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED"}, text)
        self.check_memory(daemon, "gRPC")
        self.check_alive()

    def test_many_senders(self):
        """Each with the shapes that multiply most."""
        requests = [
            ("/v1/traces", numbered_spans(60000)),
            (PROFILES, linked_samples(20000)),
            ("/v1/traces", resources(500000)),
            ("/v1/logs", bodies(100000, 60)),
        ]
        daemon = self.start()
        statuses = []

        def send(place):
            for _ in range(TIMES):
                path, body = requests[place % len(requests)]
                statuses.append(self.post(path, body).status)

        senders = [threading.Thread(target=send, args=(i,)) for i in range(SENDERS)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        self.assertEqual(len(statuses), SENDERS * TIMES)
        self.assertLessEqual(set(statuses), {TAKEN, LATER})
        self.assertIn(TAKEN, statuses)
        self.check_memory(daemon, "many senders")

    def test_long_queue(self):
        """What holds a request there is many times as large as a span of two bytes."""
        self.http = free_port()
        backend = f"http://127.0.0.1:{free_port()}"  # nobody is there
        config = LONG_QUEUE.format(http=self.http, backend=backend, budget=BUDGET_MIB)
        daemon = self.daemon(config)
        statuses = [self.post("/v1/traces", spans(30000)).status for _ in range(6)]
        self.assertEqual(statuses[0], TAKEN)
        self.assertLessEqual(set(statuses), {TAKEN, LATER})
        self.assertIn(LATER, statuses)
        self.check_memory(daemon, "a long queue")

    def test_silent_back_end(self):
        """It takes connections and says nothing: what waits for it fills the budget, and each
        attempt compresses what waits once more."""
        self.http = free_port()
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        backend = "http://127.0.0.1:%d" % listener.getsockname()[1]
        config = SILENT.format(http=self.http, backend=backend, budget=BUDGET_MIB)
        daemon = self.daemon(config)
        texts = [os.urandom(200).hex().encode() for _ in range(2500)]
        body = message(1, message(2, *(message(2, message(5, text)) for text in texts)))
        statuses = []
        until = time.monotonic() + 25 / SHARE

        def send():
            while time.monotonic() < until:
                headers = {"Content-Type": client.PROTOBUF}
                try:
                    statuses.append(self.send("/v1/traces", body, headers).status)
                except OSError:
                    pass  # while the budget is used up, not even a connection has room

        senders = [threading.Thread(target=send) for _ in range(SENDERS // 2)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        self.assertLessEqual(set(statuses), {TAKEN, LATER})
        self.assertIn(LATER, statuses)
        self.check_memory(daemon, "a silent back-end")

    def test_http2_headers(self):
        """HPACK repeats four fields of 3.9 KB for one byte each; bodies are never sent."""
        daemon = self.start()
        connections = [self.open_streams() for _ in range(CONNECTIONS)]
        refused = sum(self.count_refused(connection) for connection in connections)
        self.check_memory(daemon, "headers")
        if not process.is_sanitized():
            self.assertGreater(refused, 0)
        self.assertLess(refused, CONNECTIONS * STREAMS)
        for connection in connections:
            connection.close()
        process.poll_until(self.has_room, 30, "room again")
        self.check_memory(daemon, "headers")

    def has_room(self):
        try:
            return client.post(self.http, "traces", spans(3)).status == TAKEN
        except OSError:
            # While the budget is used up, not even a connection has room.
            return False

    def open_streams(self):
        connection = client.open_connection(self.port)
        self.addCleanup(connection.close)
        fields = b"\x83\x86\x01\x01h" + hpack(b"\x04", METHOD.encode())
        fields += b"\x0f\x10\x10application/grpc"
        out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)
        for stream in range(1, 2 * STREAMS, 2):
            # The first one puts the field into the dynamic table.
            bomb = hpack(hpack(b"\x40", b"x-bomb"), b"x" * 3900) if stream == 1 else b"\xbe"
            out += frame(HEADERS, END_HEADERS, stream, fields + bomb + b"\xbe" * 3)
        connection.sendall(out + frame(PING, 0, 0, bytes(8)))
        return connection

    def count_refused(self, connection):
        """RST_STREAM frames with REFUSED_STREAM. The reply to a ping overtakes those of its turn,
        so a second one has to follow it. A connection is closed, with all of its streams, when
        itself, its table of header fields or the frames that wait for it find no room."""
        refused, input_, pings = 0, b"", 0
        while True:
            while len(input_) < 9 or len(input_) < 9 + int.from_bytes(input_[:3], "big"):
                try:
                    more = connection.recv(65536)
                except ConnectionResetError:
                    self.assertEqual((input_, pings), (b"", 0), "reset after its first frames")
                    return STREAMS
                self.assertTrue(more, "the server closed the connection")
                input_ += more
            size, kind, flags = int.from_bytes(input_[:3], "big"), input_[3], input_[4]
            if kind == GOAWAY:
                self.assertIn(input_[17 : 9 + size], REASONS)
                return STREAMS
            refused += kind == RST_STREAM and input_[9 : 9 + size] == bytes([0, 0, 0, 7])
            input_ = input_[9 + size :]
            if kind == PING and flags == ACK:
                pings += 1
                if pings == 2:
                    return refused
                connection.sendall(frame(PING, 0, 0, bytes(8)))


SPLIT = {"batch": ", send_batch_size: 100, send_batch_max_size: 100"}
KEEP = {"join": "    keep: [{slow: 1s}, error]\n    keep_unlinked: false\n"}
OLDER = {"otlphttp": 'proto_version: "1.9"'}

# Path, body and headers, the statuses that are right, and the configuration's changes.
ROWS = [
    ("references", PROFILES, lambda: references(3000), {NEVER}),
    ("references within the allowance", PROFILES, lambda: references(40), {NEVER}),
    ("few references", PROFILES, lambda: references(5), {TAKEN}),
    ("nested references", PROFILES, lambda: nested_references(4000), {NEVER}),
    ("references of a resource", PROFILES, lambda: resource_references(4000), {NEVER}),
    ("empty entries", PROFILES, lambda: empty_entries(1400000), {NEVER, LATER}),
    ("empty profiles", PROFILES, lambda: empty_profiles(9000000), {NEVER, LATER}),
    ("a long stack", PROFILES, lambda: long_stack(5000000), {TAKEN, NEVER, LATER}),
    ("spelt stacks", PROFILES, lambda: spelt_stacks(3000), {TAKEN, NEVER, LATER}),
    ("empty spans", "/v1/traces", lambda: spans(9000000), {NEVER}),
    ("many small spans", "/v1/traces", lambda: spans(300000), {TAKEN}),
    ("empty attributes", "/v1/traces", lambda: attributes(9000000), {NEVER}),
    ("empty resources", "/v1/traces", lambda: resources(9000000), {NEVER}),
    ("empty values", "/v1/traces", lambda: values(9000000), {NEVER}),
    ("empty points", "/v1/metrics", lambda: points(9000000), {NEVER}),
    ("empty records", "/v1/logs", lambda: records(9000000), {NEVER}),
    ("half as many spans", "/v1/traces", lambda: spans(1000000), {TAKEN, LATER}),
    ("half as many values", "/v1/traces", lambda: values(1500000), {TAKEN, LATER}),
    ("half as many points", "/v1/metrics", lambda: points(1000000), {TAKEN, LATER}),
    ("half as many records", "/v1/logs", lambda: records(1000000), {TAKEN, LATER}),
    ("half as many attributes", "/v1/traces", lambda: attributes(1500000), {TAKEN, LATER}),
    ("some linked samples", PROFILES, lambda: linked_samples(50000), {TAKEN, NEVER, LATER}),
    ("JSON resources", "/v1/traces", lambda: json_of("resourceSpans", "{}", 6000000), {TAKEN}),
    (
        "JSON spans",
        "/v1/traces",
        lambda: json_of("resourceSpans.scopeSpans.spans", "{}", 6000000),
        {NEVER, LATER},
    ),
    (
        "JSON doubles",
        "/v1/metrics",
        lambda: json_of(
            "resourceMetrics.scopeMetrics.metrics",
            '{"histogram":{"dataPoints":[{"explicitBounds":[' + "1," * 9000000 + "1]}]}}",
            1,
        ),
        {NEVER},
    ),
    (
        "folded stacks",
        INGEST,
        lambda: b"".join(b"%x 1\n" % i for i in range(1500000)),
        {TAKEN, NEVER, LATER},
    ),
    (
        "pushed zeros",
        "/push.v1.PusherService/Push",
        lambda: push(1000, b"\0" * (16 * MIB)),
        {400, NEVER, LATER},
    ),
    (
        "pushed texts",
        "/push.v1.PusherService/Push",
        lambda: push(500, message(6) + message(6, b"x" * MIB) * 15),
        {400, TAKEN, NEVER, LATER},
    ),
    (
        "pushed samples",
        "/push.v1.PusherService/Push",
        lambda: push(20, message(1, number(1, 0)) + message(2) * 400000 + message(6)),
        {400, TAKEN, NEVER, LATER},
    ),
    ("fewer empty profiles", PROFILES, lambda: empty_profiles(300000), {TAKEN}),
    ("empty scopes", "/v1/traces", lambda: scopes(1500000), {NEVER}),
    ("too many edited resources", "/v1/traces", lambda: resources(2200000), {TAKEN, NEVER}),
    ("edited resources", "/v1/traces", lambda: resources(1500000), {TAKEN, LATER}),
    ("fewer edited resources", "/v1/traces", lambda: resources(500000), {TAKEN, LATER}),
    ("marked spans", "/v1/traces", lambda: numbered_spans(450000), {TAKEN, LATER}),
    ("fewer marked spans", "/v1/traces", lambda: numbered_spans(100000), {TAKEN, LATER}),
    (
        "spans of short runs",
        "/v1/traces",
        lambda: numbered_spans(20000, b"n" * 520),
        {TAKEN, LATER},
    ),
    ("split spans", "/v1/traces", lambda: numbered_spans(150000), {TAKEN, LATER}, SPLIT),
    ("split resources", "/v1/traces", lambda: small_resources(60000), {TAKEN, LATER}, SPLIT),
    ("split bodies", "/v1/logs", lambda: bodies(38, 500000), {TAKEN, LATER}, SPLIT),
    ("printed bodies", "/v1/logs", lambda: bodies(200000, 80), {TAKEN, LATER}),
    ("printed buckets", "/v1/metrics", lambda: buckets(19000000), {TAKEN, LATER}),
    ("fewer printed buckets", "/v1/metrics", lambda: buckets(4000000), {TAKEN, LATER}),
    ("kept samples", PROFILES, lambda: linked_samples(50000), {TAKEN, LATER}, KEEP),
    ("split samples", PROFILES, lambda: linked_samples(30000), {TAKEN, LATER}, SPLIT),
    ("labelled samples", PROFILES, lambda: labelled_samples(60000), {TAKEN, LATER}),
    ("many profiles", PROFILES, lambda: many_profiles(100000 // SHARE), {TAKEN, LATER}),
    ("split profiles", PROFILES, lambda: many_profiles(100000 // SHARE), {TAKEN, LATER}, SPLIT),
    ("older profiles", PROFILES, lambda: linked_samples(30000), {TAKEN, LATER}, OLDER),
    ("large files", PROFILES, lambda: files(20, 500000), {TAKEN, LATER}),
    ("small files", PROFILES, lambda: files(50000 // SHARE, 10), {TAKEN, LATER}),
    (
        "fewer JSON doubles",
        "/v1/metrics",
        lambda: json_of(
            "resourceMetrics.scopeMetrics.metrics",
            '{"histogram":{"dataPoints":[{"explicitBounds":[' + "1," * 2000000 + "1]}]}}",
            1,
        ),
        {TAKEN, LATER},
    ),
    (
        "deep folded stacks",
        INGEST,
        lambda: b"".join(
            b";".join(b"f%d" % (i * j % 5000) for j in range(60)) + b" 1\n" for i in range(20000)
        ),
        {TAKEN, NEVER, LATER},
    ),
]


def add(name, path, make, expected, changes=None):
    def test(self):
        daemon = self.start(**(changes or {}))
        body, headers = packed(path, make())
        for turn in range(TIMES):
            response = self.send(path, body, headers)
            if turn > 0 and LATER not in expected:
                # The export of those before it may still fill the budget.
                until = time.monotonic() + 30
                while response.status == LATER and time.monotonic() < until:
                    response = self.send(path, body, headers)
            self.assertIn(response.status, expected, (name, response.body[:300]))
        self.check_memory(daemon, name)
        self.check_alive()

    setattr(MemoryBombs, "test_" + name.replace(" ", "_"), test)


for row in ROWS:
    add(*row)


if __name__ == "__main__":
    case.main()
