# SPDX-License-Identifier: Apache-2.0
"""The resource processor: configuration and input in, attributes out, beside the Go collector's."""

import hashlib
import struct
from dataclasses import dataclass, field

from support import case, client, otlp, peers
from support.ports import free_port

A = {"a": "1"}
TYPES = {"s": "text", "i": 7, "d": 2.5, "b": True, "l": ["x", 1], "m": {"k": "v"}, "y": b"\x00\xff"}


@dataclass
class Row:
    """`actions`: YAML flow mappings. `after` is what the Go collector makes of `before`."""

    name: str
    actions: list
    before: dict
    after: dict
    headers: dict = field(default_factory=dict)


HASH_OF_TEXT = hashlib.sha256(b"text").hexdigest()
HASH_OF_7 = hashlib.sha256(struct.pack("<q", 7)).hexdigest()
HASH_OF_2_5 = hashlib.sha256(struct.pack("<d", 2.5)).hexdigest()
HASH_OF_TRUE = hashlib.sha256(b"\x01").hexdigest()
HASH_OF_V = hashlib.sha256(b"v").hexdigest()

ROWS = [
    Row("insert a new key", ["{key: n, value: v, action: insert}"], A, {**A, "n": "v"}),
    Row("insert keeps an old key", ["{key: a, value: v, action: insert}"], A, A),
    Row("update an old key", ["{key: a, value: v, action: update}"], A, {"a": "v"}),
    Row("update makes no key", ["{key: n, value: v, action: update}"], A, A),
    Row("upsert a new key", ["{key: n, value: v, action: upsert}"], A, {**A, "n": "v"}),
    Row("upsert an old key", ["{key: a, value: v, action: upsert}"], A, {"a": "v"}),
    Row("an action in capitals", ["{key: n, value: v, action: UPSERT}"], A, {**A, "n": "v"}),
    Row("upsert changes the type", ["{key: a, value: 5, action: upsert}"], A, {"a": 5}),
    Row("a double", ["{key: n, value: 1.5, action: insert}"], {}, {"n": 1.5}),
    Row("a bool", ["{key: n, value: true, action: insert}"], {}, {"n": True}),
    Row("a quoted number", ['{key: n, value: "5", action: insert}'], {}, {"n": "5"}),
    Row("a list", ["{key: n, value: [x, 2], action: insert}"], {}, {"n": ["x", 2]}),
    Row("a map", ["{key: n, value: {k: v}, action: insert}"], {}, {"n": {"k": "v"}}),
    Row(
        "from another attribute",
        ["{key: n, from_attribute: a, action: upsert}"],
        A,
        {**A, "n": "1"},
    ),
    Row("from an attribute that is missing", ["{key: n, from_attribute: z, action: upsert}"], A, A),
    Row("from itself", ["{key: a, from_attribute: a, action: upsert}"], A, A),
    Row(
        "from a list",
        ["{key: n, from_attribute: l, action: insert}"],
        TYPES,
        {**TYPES, "n": ["x", 1]},
    ),
    Row(
        "from a map",
        ["{key: n, from_attribute: m, action: insert}"],
        TYPES,
        {**TYPES, "n": {"k": "v"}},
    ),
    Row(
        "from bytes",
        ["{key: n, from_attribute: y, action: insert}"],
        TYPES,
        {**TYPES, "n": b"\x00\xff"},
    ),
    Row("delete", ["{key: a, action: delete}"], {**A, "b": "2"}, {"b": "2"}),
    Row("delete what is missing", ["{key: z, action: delete}"], A, A),
    Row("delete the last", ["{key: a, action: delete}"], A, {}),
    Row(
        "delete by pattern",
        ["{pattern: '^x', action: delete}"],
        {"x1": "1", "x2": 2, "ax": "3"},
        {"ax": "3"},
    ),
    Row(
        "a pattern searches",
        ["{pattern: 'x', action: delete}"],
        {"x1": "1", "ax": "3", "b": "4"},
        {"b": "4"},
    ),
    Row(
        "key and pattern",
        ["{key: b, pattern: 'x', action: delete}"],
        {"x": "1", "b": "2", "c": "3"},
        {"c": "3"},
    ),
    Row("hash a string", ["{key: s, action: hash}"], {"s": "text"}, {"s": HASH_OF_TEXT}),
    Row("hash an int", ["{key: i, action: hash}"], {"i": 7}, {"i": HASH_OF_7}),
    Row("hash a double", ["{key: d, action: hash}"], {"d": 2.5}, {"d": HASH_OF_2_5}),
    Row("hash a bool", ["{key: b, action: hash}"], {"b": True}, {"b": HASH_OF_TRUE}),
    Row("hash a list", ["{key: l, action: hash}"], {"l": ["x"]}, {"l": ""}),
    Row("hash a map", ["{key: m, action: hash}"], {"m": {"k": "v"}}, {"m": ""}),
    Row("hash bytes", ["{key: y, action: hash}"], {"y": b"\x00"}, {"y": ""}),
    Row("hash a missing key", ["{key: z, action: hash}"], A, A),
    Row(
        "hash by pattern",
        ["{pattern: 's', action: hash}"],
        {"s": "text", "t": "text"},
        {"s": HASH_OF_TEXT, "t": "text"},
    ),
    Row(
        "extract",
        ["{key: u, pattern: '^(?P<scheme>[a-z]+)://(?P<host>[^/]+)', action: extract}"],
        {"u": "http://h:1/p"},
        {"u": "http://h:1/p", "scheme": "http", "host": "h:1"},
    ),
    Row(
        "extract overwrites",
        ["{key: u, pattern: '(?P<a>x+)', action: extract}"],
        {"u": "axxb", "a": "1"},
        {"u": "axxb", "a": "xx"},
    ),
    Row(
        "extract without a match",
        ["{key: u, pattern: '(?P<a>z+)', action: extract}"],
        {"u": "x"},
        {"u": "x"},
    ),
    Row(
        "extract from a number",
        ["{key: u, pattern: '(?P<a>.+)', action: extract}"],
        {"u": 5},
        {"u": 5},
    ),
    Row(
        "extract an optional group",
        ["{key: u, pattern: '(?P<a>x)(?P<b>y)?', action: extract}"],
        {"u": "x"},
        {"u": "x", "a": "x", "b": ""},
    ),
    Row(
        "convert text to int",
        ["{key: u, action: convert, converted_type: int}"],
        {"u": "42"},
        {"u": 42},
    ),
    Row(
        "convert bad text to int",
        ["{key: u, action: convert, converted_type: int}"],
        {"u": "4x"},
        {"u": "4x"},
    ),
    Row(
        "convert double to int",
        ["{key: u, action: convert, converted_type: int}"],
        {"u": 2.9},
        {"u": 2},
    ),
    Row(
        "convert bool to int",
        ["{key: u, action: convert, converted_type: int}"],
        {"u": True},
        {"u": 1},
    ),
    Row(
        "convert text to double",
        ["{key: u, action: convert, converted_type: double}"],
        {"u": "2.5e3"},
        {"u": 2500.0},
    ),
    Row(
        "convert int to double",
        ["{key: u, action: convert, converted_type: double}"],
        {"u": 3},
        {"u": 3.0},
    ),
    Row(
        "convert int to text",
        ["{key: u, action: convert, converted_type: string}"],
        {"u": 3},
        {"u": "3"},
    ),
    Row(
        "convert double to text",
        ["{key: u, action: convert, converted_type: string}"],
        {"u": 0.5},
        {"u": "0.5"},
    ),
    Row(
        "convert bool to text",
        ["{key: u, action: convert, converted_type: string}"],
        {"u": False},
        {"u": "false"},
    ),
    Row(
        "convert list to text",
        ["{key: l, action: convert, converted_type: string}"],
        {"l": ["x", 1]},
        {"l": '["x",1]'},
    ),
    Row(
        "convert map to text",
        ["{key: m, action: convert, converted_type: string}"],
        {"m": {"k": "v"}},
        {"m": '{"k":"v"}'},
    ),
    Row(
        "convert bytes to text",
        ["{key: y, action: convert, converted_type: string}"],
        {"y": b"\x00\xff"},
        {"y": "AP8="},
    ),
    Row(
        "convert hexadecimal text to int",
        ["{key: u, action: convert, converted_type: int}"],
        {"u": "0x1f"},
        {"u": "0x1f"},
    ),
    Row(
        "convert a string that is too large to int",
        ["{key: u, action: convert, converted_type: int}"],
        {"u": "9223372036854775808"},
        {"u": "9223372036854775808"},
    ),
    Row(
        "convert text with leading zeros to int",
        ["{key: u, action: convert, converted_type: int}"],
        {"u": "010"},
        {"u": 10},
    ),
    Row(
        "convert infinity to double",
        ["{key: u, action: convert, converted_type: double}"],
        {"u": "-inf"},
        {"u": float("-inf")},
    ),
    Row(
        "convert a string that is too large to double",
        ["{key: u, action: convert, converted_type: double}"],
        {"u": "1e400"},
        {"u": "1e400"},
    ),
    Row(
        "from metadata sent twice",
        ["{key: n, from_context: metadata.x-a, action: upsert}"],
        {},
        {"n": "1;2"},
        {"X-A": "1", "x-A": "2"},
    ),
    Row("only a default", ["{key: n, default_value: 5, action: upsert}"], A, {**A, "n": 5}),
    Row(
        "extract over its own key",
        ["{key: u, pattern: '(?P<u>x)', action: extract}"],
        {"u": "yxz"},
        {"u": "x"},
    ),
    Row(
        "nulls inside",
        ["{key: n, value: [null, {a: [1.5]}], action: insert}"],
        {},
        {"n": [None, {"a": [1.5]}]},
    ),
    Row(
        "in order",
        [
            "{key: n, value: v, action: insert}",
            "{key: n, action: hash}",
            "{key: a, from_attribute: n, action: update}",
            "{key: n, action: delete}",
        ],
        A,
        {"a": HASH_OF_V},
    ),
    Row(
        "a name with dots",
        ["{key: service.name, value: new, action: upsert}"],
        {"service.name": "old"},
        {"service.name": "new"},
    ),
    Row(
        "from metadata",
        ["{key: n, from_context: metadata.x-tenant, action: insert}"],
        A,
        {**A, "n": "t1"},
        {"X-Tenant": "t1"},
    ),
    Row(
        "from a bare metadata name",
        ["{key: n, from_context: x-tenant, action: insert}"],
        A,
        {**A, "n": "t1"},
        {"X-Tenant": "t1"},
    ),
    Row(
        "from metadata that is missing",
        ["{key: n, from_context: metadata.x-none, action: insert}"],
        A,
        A,
    ),
    Row(
        "from the client's address",
        ["{key: n, from_context: client.address, action: insert}"],
        A,
        {**A, "n": "127.0.0.1"},
    ),
    Row(
        "a default value",
        ["{key: n, from_attribute: z, default_value: d, action: insert}"],
        A,
        {**A, "n": "d"},
    ),
    Row(
        "a default value not needed",
        ["{key: n, from_attribute: a, default_value: d, action: insert}"],
        A,
        {**A, "n": "1"},
    ),
]


def config(ports, sink):
    """A receiver, a processor, an exporter and a pipeline for every row."""
    receivers, processors, exporters, pipelines = [], [], [], []
    for index, (row, port) in enumerate(zip(ROWS, ports)):
        receivers.append(
            f"  otlp/{index}:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{port}\n        include_metadata: true\n"
        )
        actions = "".join(f"    - {action}\n" for action in row.actions)
        processors.append(f"  resource/{index}:\n    attributes:\n{actions}")
        exporters.append(
            f"  otlphttp/{index}:\n    traces_endpoint: {sink.url}/rows/{index}\n"
            + case.DIRECT
            + case.NO_RETRY
            + case.UNCOMPRESSED
        )
        pipelines.append(
            f"    traces/{index}:\n      receivers: [otlp/{index}]\n"
            f"      processors: [resource/{index}]\n      exporters: [otlphttp/{index}]\n"
        )
    sections = {
        "receivers": receivers,
        "processors": processors,
        "exporters": exporters,
        "service": [case.QUIET, "  pipelines:\n", *pipelines],
    }
    return "".join(f"{name}:\n{''.join(texts)}" for name, texts in sections.items())


def typed(attributes):
    """A dict as otlp.attributes_of gives it, for comparison."""
    request = otlp.traces(0, attributes)
    return otlp.attributes_of(request.resource_spans[0].resource.attributes) if attributes else []


class Resource(case.Case):
    def check(self, executable):
        sink = self.sink()
        ports = [free_port() for _ in ROWS]
        server = self.server(config(ports, sink), executable=executable).wait_until_ready()
        for index, (row, port) in enumerate(zip(ROWS, ports)):
            with self.subTest(row.name):
                self.check_row(sink, index, row, port)
        return server

    def check_row(self, sink, index, row, port):
        request = otlp.traces(2)
        del request.resource_spans[0].resource.attributes[:]
        otlp.add_attributes(request.resource_spans[0].resource.attributes, row.before)
        headers = {"Content-Type": client.PROTOBUF, **row.headers}
        body = request.SerializeToString()
        self.assertEqual(client.request(port, "POST", "/v1/traces", body, headers).status, 200)
        arrived = next(seen for seen in sink.requests if seen.path == f"/rows/{index}")
        result = otlp.decode("traces", arrived.payload)
        after = otlp.attributes_of(result.resource_spans[0].resource.attributes)
        self.assertEqual(after, typed(row.after))
        self.assertEqual(otlp.spans_of([arrived.payload]), otlp.spans_of([body]))

    def test_spanflame_edits_as_the_table_says(self):
        self._stop_cleanly(self.check(None))

    def test_go_collector_edits_as_the_table_says(self):
        self.check(peers.otelcol())


if __name__ == "__main__":
    case.main()
