# SPDX-License-Identifier: Apache-2.0
"""Processors of spans, metrics and log records: JSON in, JSON out, beside the Go collector's."""

import json
import time
from dataclasses import dataclass, field

from support import case, client, peers
from support.ports import free_port


def text(key, value):
    return {"key": key, "value": {"stringValue": value}}


def number(key, value):
    return {"key": key, "value": {"intValue": str(value)}}


def spans(*spans, resource=()):
    scope = {"scope": {}, "spans": [{**span, "status": {}} for span in spans]}
    attributes = {"attributes": list(resource)} if resource else {}
    return {"resourceSpans": [{"resource": attributes, "scopeSpans": [scope]}]}


def logs(*records):
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": list(records)}]}]}


def metrics(*metrics, resource=()):
    attributes = {"attributes": list(resource)} if resource else {}
    return {
        "resourceMetrics": [
            {"resource": attributes, "scopeMetrics": [{"scope": {}, "metrics": list(metrics)}]}
        ]
    }


def total(temporality, *points):
    points = [
        {"startTimeUnixNano": "1", "timeUnixNano": str(at), "asInt": str(value)}
        for at, value in points
    ]
    return metrics(
        {
            "name": "m",
            "sum": {
                "dataPoints": points,
                "aggregationTemporality": temporality,
                "isMonotonic": True,
            },
        }
    )


def query_span(name, system, query):
    attributes = [text("db.system.name", system), text("q", query)]
    return {"name": name, "kind": 3, "attributes": attributes}


def url_span(name, url, kind=2):
    return {"name": name, "kind": kind, "attributes": [text("url.full", url)]}


HIGH = "0000000000000000aaf0000000000001"
LOW = "000000000000000001200000000000a1"
DELTA, CUMULATIVE = 1, 2


@dataclass
class Row:
    """`after` is what the Go collector makes of the requests `before`, one after another."""

    name: str
    processor: str
    section: str
    signal: str
    before: list
    after: list
    headers: dict = field(default_factory=dict)


ROWS = [
    Row(
        "attributes of chosen spans",
        "attributes",
        "{include: {match_type: regexp, span_names: [^a]}, actions: [{key: t, from_context: "
        "metadata.x-tenant, action: insert}, {key: k, action: delete}]}",
        "traces",
        [spans({"name": "ab", "attributes": [text("k", "1"), text("l", "2"), text("m", "3")]}, {"name": "b"})],
        [spans({"name": "ab", "attributes": [text("t", "one"), text("l", "2"), text("m", "3")]}, {"name": "b"})],
        {"X-Tenant": "one"},
    ),
    Row(
        "attributes of data points",
        "attributes",
        "{actions: [{key: n, value: v, action: upsert}]}",
        "metrics",
        [metrics({"name": "m", "gauge": {"dataPoints": [{"asInt": "1"}]}})],
        [metrics({"name": "m", "gauge": {"dataPoints": [{"attributes": [text("n", "v")], "asInt": "1"}]}})],
    ),
    Row(
        "sampled traces",
        "probabilistic_sampler",
        "{mode: equalizing, sampling_percentage: 50}",
        "traces",
        [spans({"traceId": HIGH, "traceState": "x=y"}, {"traceId": LOW})],
        [spans({"traceId": HIGH, "traceState": "ot=th:8,x=y"})],
    ),
    Row(
        "sampled log records",
        "probabilistic_sampler",
        "{sampling_percentage: 50, attribute_source: record, from_attribute: id}",
        "logs",
        [logs({"body": {}, "attributes": [text("id", "abc")]}, {"body": {}, "attributes": [text("id", "cde")]})],
        [
            logs(
                {
                    "body": {},
                    "attributes": [
                        text("id", "cde"),
                        text("sampling.randomness", "89a8361e84dd95"),
                        text("sampling.threshold", "8"),
                    ],
                }
            )
        ],
    ),
    Row(
        "redacted log records",
        "redaction",
        '{allowed_keys: [a], blocked_values: ["[0-9]{4}"], summary: debug}',
        "logs",
        [logs({"body": {"stringValue": "pin 1234"}, "attributes": [text("a", "9999"), text("b", "x")]})],
        [
            logs(
                {
                    "body": {"stringValue": "pin ****"},
                    "attributes": [
                        text("a", "****"),
                        text("redaction.redacted.keys", "b"),
                        number("redaction.redacted.count", 1),
                        text("redaction.masked.keys", "a"),
                        number("redaction.masked.count", 1),
                        text("redaction.body.masked.keys", "body"),
                        number("redaction.body.masked.count", 1),
                    ],
                }
            )
        ],
    ),
    Row(
        "grouped data points",
        "groupbyattrs",
        "{keys: [host]}",
        "metrics",
        [
            metrics(
                {"name": "m", "gauge": {"dataPoints": [{"attributes": [text("host", "x")], "asInt": "1"}]}},
                {"name": "n", "gauge": {"dataPoints": [{"attributes": [text("host", "x")], "asInt": "2"}]}},
            )
        ],
        [
            metrics(
                {"name": "m", "gauge": {"dataPoints": [{"asInt": "1"}]}},
                {"name": "n", "gauge": {"dataPoints": [{"asInt": "2"}]}},
                resource=[text("host", "x")],
            )
        ],
    ),
    Row(
        "deltas",
        "cumulativetodelta",
        "{initial_value: drop}",
        "metrics",
        [total(CUMULATIVE, (10, 5)), total(CUMULATIVE, (20, 9))],
        [{**total(DELTA, (20, 4))}],
    ),
    Row(
        "sums of deltas",
        "deltatocumulative",
        "{}",
        "metrics",
        [total(DELTA, (10, 5)), total(DELTA, (20, 4))],
        [total(CUMULATIVE, (10, 5)), total(CUMULATIVE, (20, 9))],
    ),
    Row(
        "spans of one trace",
        "groupbytrace",
        "{wait_duration: 500ms}",
        "traces",
        [spans({"traceId": HIGH, "name": "a"}), spans({"traceId": HIGH, "name": "b"})],
        [
            {
                "resourceSpans": spans({"traceId": HIGH, "name": "a"})["resourceSpans"]
                + spans({"traceId": HIGH, "name": "b"})["resourceSpans"]
            }
        ],
    ),
    Row(
        "spans without the values of their queries",
        "redaction",
        "{allow_all_keys: true, db_sanitizer: {sql: {enabled: true, attributes: [q]}, "
        "redis: {enabled: true, attributes: [q]}, mongo: {enabled: true, attributes: [q]}}}",
        "traces",
        [
            spans(
                query_span("SELECT 1 FROM t2", "postgresql", "a IN (1, 'b', NULL) -- c 1"),
                query_span("SET k v", "redis", "HSET k f1 v1 f2 v2\nAUTH p"),
                query_span("find", "mongodb", '{"find": "users", "filter": {"a": [1, "b"]}}'),
            )
        ],
        [
            spans(
                query_span("SELECT ? FROM t?", "postgresql", "a IN (?, ?, ?) -- c 1"),
                query_span("SET k ?", "redis", "HSET k f1 ? f2 ?\nAUTH ?"),
                query_span("find", "mongodb", '{"find":"?","filter":{"a":["?","?"]}}'),
            )
        ],
    ),
    Row(
        "spans without the ids of their URLs",
        "redaction",
        "{allow_all_keys: true, url_sanitizer: {enabled: true, attributes: [url.full]}}",
        "traces",
        [
            spans(
                url_span("GET /users/7/orders", "https://example.com/users/7/orders?page=2"),
                url_span("users?page=2", "/v1/users/9f86d081-884c-4d65/xqzjkvb/summary.html", 3),
                url_span("/7/8", "/a/b/c/d/e/f/g/h/zq/j"),
                url_span("/users/7", "/api/k8s/namespaces/kube-system/pods/web-6d4b75cb6d-hx7zq#log", 1),
            )
        ],
        [
            spans(
                url_span("GET /users/*/orders", "*//example.com/users/*/orders"),
                url_span("users", "/v1/users/*/*/summary.html", 3),
                url_span("/7/8", "/a/b/c/d/e/f/g/h/*q"),
                url_span("/users/7", "/api/k8s/namespaces/kube-system/pods/*", 1),
            )
        ],
    ),
    Row(
        "log records without the ids of their URLs",
        "redaction",
        "{allow_all_keys: true, url_sanitizer: {enabled: true, attributes: [url]}, summary: info}",
        "logs",
        [logs({"body": {"stringValue": "GET /users/7?a=1"}, "attributes": [text("url", "/1"), text("path", "/1")]})],
        [
            logs(
                {
                    "body": {"stringValue": "GET /users/*"},
                    "attributes": [
                        text("url", "/*"),
                        text("path", "/1"),
                        number("redaction.masked.count", 1),
                        number("redaction.body.masked.count", 1),
                    ],
                }
            )
        ],
    ),
]
# A delta begins where the point before it was.
ROWS[6].after[0]["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["sum"]["dataPoints"][0][
    "startTimeUnixNano"
] = "10"


def config(ports, sink):
    """A receiver, a processor, an exporter and a pipeline for every row."""
    receivers, processors, exporters, pipelines = [], [], [], []
    for index, (row, port) in enumerate(zip(ROWS, ports)):
        receivers.append(
            f"  otlp/{index}:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{port}\n        include_metadata: true\n"
        )
        processors.append(f"  {row.processor}/{index}: {row.section}\n")
        exporters.append(
            f"  otlphttp/{index}:\n    {row.signal}_endpoint: {sink.url}/rows/{index}\n"
            "    encoding: json\n" + case.DIRECT + case.NO_RETRY + case.UNCOMPRESSED
        )
        pipelines.append(
            f"    {row.signal}/{index}:\n      receivers: [otlp/{index}]\n"
            f"      processors: [{row.processor}/{index}]\n      exporters: [otlphttp/{index}]\n"
        )
    sections = {
        "receivers": receivers,
        "processors": processors,
        "exporters": exporters,
        "service": [case.QUIET, "  pipelines:\n", *pipelines],
    }
    return "".join(f"{name}:\n{''.join(texts)}" for name, texts in sections.items())


class Processors(case.Case):
    def check(self, executable):
        sink = self.sink()
        ports = [free_port() for _ in ROWS]
        server = self.server(config(ports, sink), executable=executable).wait_until_ready()
        for index, (row, port) in enumerate(zip(ROWS, ports)):
            with self.subTest(row.name):
                self.check_row(sink, index, row, port)
        return server

    def check_row(self, sink, index, row, port):
        headers = {"Content-Type": "application/json", **row.headers}
        for request in row.before:
            response = client.request(
                port, "POST", f"/v1/{row.signal}", json.dumps(request).encode(), headers
            )
            self.assertEqual(response.status, 200)
        seen = []
        deadline = time.monotonic() + 10
        while len(seen) < len(row.after) and time.monotonic() < deadline:
            seen = [json.loads(at.payload) for at in sink.requests if at.path == f"/rows/{index}"]
            # The Go collector sends requests of which nothing is left, too.
            seen = [request for request in seen if request]
            time.sleep(0.01)
        self.assertEqual(seen, row.after)

    def test_spanflame_does_as_the_table_says(self):
        self._stop_cleanly(self.check(None))

    def test_go_collector_does_as_the_table_says(self):
        self.check(peers.otelcol())


if __name__ == "__main__":
    case.main()
