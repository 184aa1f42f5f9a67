# SPDX-License-Identifier: Apache-2.0
"""filter and transform: statements and requests in, requests out, beside the Go collector's."""

from dataclasses import dataclass
from typing import Any

from support import case, client, otlp, peers
from support.ports import free_port

RESOURCE = {"service.name": "shop", "env": "prod"}
MS = 1_000_000


@dataclass
class Row:
    """`text`: the processor's YAML. `after` is what the Go collector makes of the signal's request
    below, as described() puts it; None: nothing arrives."""

    name: str
    signal: str
    processor: str
    text: str
    after: Any
    status: int = 200


def traces():
    request = otlp.traces(3, RESOURCE)
    root, query, health = request.resource_spans[0].scope_spans[0].spans
    for span, name, kind, attributes in (
        (root, "GET /", 2, {"http.route": "/", "n": 4}),
        (query, "SELECT", 3, {"db.system": "mysql", "secret": "s", "n": 5}),
        (health, "GET /health", 2, {"http.route": "/health"}),
    ):
        span.name, span.kind = name, kind
        span.end_time_unix_nano = span.start_time_unix_nano + 7 * MS
        del span.attributes[:]
        otlp.add_attributes(span.attributes, attributes)
    query.parent_span_id = root.span_id
    query.events.add(name="retry", time_unix_nano=1)
    query.events.add(name="done", time_unix_nano=2)
    return request


def logs():
    request = otlp.logs(3)
    records = request.resource_logs[0].scope_logs[0].log_records
    for record, severity in zip(records, (5, 9, 17)):
        record.severity_number = severity
    records[0].body.string_value = "debug: x"
    otlp.set_value(records[2].body, {"text": "broken", "code": 7})
    return request


def metrics():
    request = otlp.metrics(2)
    for index, metric in enumerate(request.resource_metrics[0].scope_metrics[0].metrics):
        metric.gauge.data_points[0].as_int = 10 + index
        metric.gauge.data_points.add(time_unix_nano=1, as_double=0.5)
        for cpu, point in enumerate(metric.gauge.data_points):
            otlp.add_attributes(point.attributes, {"cpu": str(cpu)})
    return request


REQUESTS = {"traces": traces, "logs": logs, "metrics": metrics}


def described(signal, payload):
    """The resource's attributes and each item's fields that the statements below touch."""
    request = otlp.decode(signal, payload)
    found = getattr(request, f"resource_{'spans' if signal == 'traces' else signal}")
    return [(dict(attributes(r.resource)), [*items(signal, r)]) for r in found]


def attributes(message):
    return otlp.attributes_of(message.attributes)


def items(signal, resource):
    if signal == "traces":
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            events = [event.name for event in span.events]
            yield (span.name, span.kind, attributes(span), events)
    elif signal == "logs":
        for record in (record for scope in resource.scope_logs for record in scope.log_records):
            yield (otlp.value_of(record.body), record.severity_number, attributes(record))
    else:
        for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
            yield (metric.name, [attributes(point) for point in metric.gauge.data_points])


def text(value):
    return ("string_value", value)


def number(value):
    return ("int_value", value)


ROOT = ("GET /", 2, [("http.route", text("/")), ("n", number(4))], [])
QUERY_ATTRIBUTES = [("db.system", text("mysql")), ("secret", text("s")), ("n", number(5))]
QUERY = ("SELECT", 3, QUERY_ATTRIBUTES, ["retry", "done"])
HEALTH = ("GET /health", 2, [("http.route", text("/health"))], [])
SHOP = {"service.name": text("shop"), "env": text("prod")}
E2E = {"service.name": text("e2e")}
DEBUG = (text("debug: x"), 5, [])
INFO = (text("log-1"), 9, [])
CPU = [[("cpu", text("0"))], [("cpu", text("1"))]]


def spans(*rows, resource=None):
    return [(resource or SHOP, list(rows))]


def records(*rows):
    return [(E2E, list(rows))]


def with_attributes(span, *more, without=()):
    kept = [pair for pair in span[2] if pair[0] not in without]
    return (span[0], span[1], [*kept, *more], span[3])


def filter_row(name, signal, text_, after, status=200):
    return Row(f"filter: {name}", signal, "filter", text_, after, status)


def transform_row(name, signal, text_, after, status=200):
    return Row(f"transform: {name}", signal, "transform", text_, after, status)


ROWS = [
    filter_row(
        "a condition of spans",
        "traces",
        "traces: {span: ['attributes[\"http.route\"] == \"/health\"']}",
        spans(ROOT, QUERY),
    ),
    filter_row(
        "any of several conditions",
        "traces",
        "traces: {span: ['kind == SPAN_KIND_CLIENT', 'IsMatch(name, \"health$\")']}",
        spans(ROOT),
    ),
    filter_row(
        "conditions that infer their context",
        "traces",
        "trace_conditions: ['span.attributes[\"n\"] > 4 and not IsRootSpan()']",
        spans(ROOT, HEALTH),
    ),
    filter_row(
        "an event",
        "traces",
        "traces: {spanevent: ['name == \"retry\"']}",
        spans(ROOT, (*QUERY[:3], ["done"]), HEALTH),
    ),
    filter_row(
        "the resource drops all",
        "traces",
        "traces: {span: ['resource.attributes[\"env\"] == \"prod\"']}",
        None,
    ),
    filter_row(
        "nothing holds", "traces", "traces: {span: ['name == nil']}", spans(ROOT, QUERY, HEALTH)
    ),
    filter_row(
        "an error that is ignored",
        "traces",
        "error_mode: ignore\n    traces: {span: ['attributes[\"n\"] / 0 == 1']}",
        spans(ROOT, QUERY, HEALTH),
    ),
    filter_row(
        "an error that propagates",
        "traces",
        "error_mode: propagate\n    traces: {span: ['attributes[\"n\"] / 0 == 1']}",
        None,
        503,
    ),
    filter_row(
        "log records",
        "logs",
        "logs: {log_record: ['IsMatch(body, \"^debug\")', 'severity_number >= 17']}",
        records(INFO),
    ),
    filter_row(
        "the body's keys",
        "logs",
        "log_conditions: ['log.body[\"code\"] == 7']",
        records(DEBUG, INFO),
    ),
    filter_row(
        "metrics",
        "metrics",
        "metrics: {metric: ['name == \"metric-0\"']}",
        records(("metric-1", CPU)),
    ),
    filter_row(
        "attributes of a metric's points",
        "metrics",
        "metrics: {metric: ['HasAttrOnDatapoint(\"cpu\", \"0\") and name == \"metric-0\"', "
        "'HasAttrKeyOnDatapoint(\"disk\")', 'HasAttrOnDatapoint(\"cpu\", \"1\")']}",
        records(("metric-1", CPU)),
    ),
    filter_row(
        "data points",
        "metrics",
        "metrics: {datapoint: ['attributes[\"cpu\"] == \"0\" and metric.name == \"metric-0\"']}",
        records(("metric-0", CPU[1:]), ("metric-1", CPU)),
    ),
    transform_row(
        "set",
        "traces",
        "trace_statements: ['set(span.attributes[\"team\"], \"pay\") where span.kind == 2', "
        "'set(span.name, \"db\") where span.attributes[\"db.system\"] != nil']",
        spans(
            with_attributes(ROOT, ("team", text("pay"))),
            ("db", *QUERY[1:]),
            with_attributes(HEALTH, ("team", text("pay"))),
        ),
    ),
    transform_row(
        "values of the resource, arithmetic, converters",
        "traces",
        "trace_statements: [{context: span, conditions: ['IsRootSpan()'], statements: ["
        "'set(attributes[\"env\"], resource.attributes[\"env\"])', "
        "'set(attributes[\"ms\"], (end_time_unix_nano - start_time_unix_nano) / 1000000)', "
        "'set(cache[\"a\"], name)', 'set(name, Concat([\"a\", cache[\"a\"]], \" \"))', "
        "'set(attributes[\"n\"], Double(attributes[\"n\"]))']}]",
        spans(
            (
                "a GET /",
                2,
                [
                    ("http.route", text("/")),
                    ("n", ("double_value", 4.0)),
                    ("env", text("prod")),
                    ("ms", number(7)),
                ],
                [],
            ),
            QUERY,
            ("a GET /health", 2, [*HEALTH[2], ("env", text("prod")), ("ms", number(7))], []),
        ),
    ),
    transform_row(
        "delete and keep keys",
        "traces",
        "trace_statements: ['delete_key(span.attributes, \"secret\")', "
        "'keep_keys(span.attributes, [\"n\"]) where span.kind == SPAN_KIND_SERVER', "
        "'delete_matching_keys(resource.attributes, \"^e\")']",
        spans(
            with_attributes(ROOT, without=("http.route",)),
            with_attributes(QUERY, without=("secret",)),
            with_attributes(HEALTH, without=("http.route",)),
            resource={"service.name": text("shop")},
        ),
    ),
    transform_row(
        "groups in order",
        "traces",
        "trace_statements: [{context: span, statements: ['set(resource.attributes[\"env\"], "
        "name)']}, {context: span, statements: ['set(attributes[\"last\"], "
        "resource.attributes[\"env\"]) where kind == SPAN_KIND_CLIENT']}]",
        spans(
            ROOT,
            with_attributes(QUERY, ("last", text("GET /health"))),
            HEALTH,
            resource={**SHOP, "env": text("GET /health")},
        ),
    ),
    transform_row(
        "an error that is ignored",
        "traces",
        "error_mode: ignore\n    trace_statements: ['set(span.name, 7)', 'set(span.kind, 5)']",
        spans(*[(span[0], 5, *span[2:]) for span in (ROOT, QUERY, HEALTH)]),
    ),
    transform_row(
        "an error that propagates",
        "traces",
        "error_mode: propagate\n    trace_statements: ['set(span.name, 7)']",
        None,
        503,
    ),
    transform_row(
        "bodies of log records",
        "logs",
        "log_statements: ['set(log.body[\"code\"], 8) where IsMap(log.body)', "
        "'set(log.attributes[\"body\"], log.body) where IsString(log.body)', "
        "'set(log.severity_number, SEVERITY_NUMBER_ERROR) where log.severity_number == 9']",
        records(
            (text("debug: x"), 5, [("body", text("debug: x"))]),
            (text("log-1"), 17, [("body", text("log-1"))]),
            ({"text": text("broken"), "code": number(8)}, 17, []),
        ),
    ),
    transform_row(
        "metrics and their points",
        "metrics",
        "metric_statements: ['set(metric.name, \"first\") where metric.name == \"metric-0\"', "
        "'delete_key(datapoint.attributes, \"cpu\") where metric.name == \"first\"']",
        records(("first", [[], []]), ("metric-1", CPU)),
    ),
]


def config(ports, sink):
    """A receiver, a processor, an exporter and a pipeline for every row."""
    receivers, processors, exporters, pipelines = [], [], [], []
    for index, (row, port) in enumerate(zip(ROWS, ports)):
        receivers.append(
            f"  otlp/{index}:\n    protocols:\n      http:\n        endpoint: 127.0.0.1:{port}\n"
        )
        processors.append(f"  {row.processor}/{index}:\n    {row.text}\n")
        exporters.append(
            f"  otlphttp/{index}:\n    {row.signal}_endpoint: {sink.url}/rows/{index}\n"
            + case.DIRECT
            + case.NO_RETRY
            + case.UNCOMPRESSED
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


class Statements(case.Case):
    def check(self, executable):
        sink = self.sink()
        ports = [free_port() for _ in ROWS]
        server = self.server(config(ports, sink), executable=executable).wait_until_ready()
        for index, (row, port) in enumerate(zip(ROWS, ports)):
            with self.subTest(row.name):
                self.check_row(sink, index, row, port)
        return server

    def check_row(self, sink, index, row, port):
        body = REQUESTS[row.signal]().SerializeToString()
        self.assertEqual(client.post(port, row.signal, body).status, row.status)
        arrived = [seen.payload for seen in sink.requests if seen.path == f"/rows/{index}"]
        after = described(row.signal, arrived[0]) if arrived else None
        self.assertEqual(after, row.after)

    def test_spanflame_edits_as_the_table_says(self):
        self._stop_cleanly(self.check(None))

    def test_go_collector_edits_as_the_table_says(self):
        self.check(peers.otelcol())


if __name__ == "__main__":
    case.main()
