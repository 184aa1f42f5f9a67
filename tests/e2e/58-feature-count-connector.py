# SPDX-License-Identifier: Apache-2.0
"""count: the same spans, metrics, log records and profiles to the daemon and to the Go collector, and the
counts that both make of them."""

import json
import os
import random
import subprocess
import tempfile
from dataclasses import dataclass

from support import case, client, peers, process
from support.ports import free_port
from support.sink import Reply

SCOPE = "github.com/open-telemetry/opentelemetry-collector-contrib/connector/countconnector"
PATHS = {
    "traces": "/v1/traces",
    "metrics": "/v1/metrics",
    "logs": "/v1/logs",
    "profiles": "/v1development/profiles",
}
JSON = {"Content-Type": "application/json"}
GATES = ["--feature-gates=service.profilesSupport"]
# Of everything below; counts of what has no time have that of now.
DATA_NS = 1_700_000_000_000_000_000


def value(of):
    """A Python value as an AnyValue in JSON."""
    if isinstance(of, bool):
        return {"boolValue": of}
    if isinstance(of, int):
        return {"intValue": str(of)}
    if isinstance(of, float):
        return {"doubleValue": of}
    if isinstance(of, bytes):
        return {"bytesValue": of.decode()}
    if isinstance(of, list):
        return {"arrayValue": {"values": [value(one) for one in of]}}
    if isinstance(of, dict):
        return {"kvlistValue": {"values": attributes(of)}}
    return {"stringValue": of}


def attributes(pairs):
    return [{"key": key, "value": value(one)} for key, one in pairs.items()]


def at(offset):
    return str(DATA_NS + offset) if offset else "0"


def span(name, kind, start, end, pairs=None, events=()):
    return {
        "traceId": "0102030405060708090a0b0c0d0e0f10",
        "spanId": "0102030405060708",
        "name": name,
        "kind": kind,
        "startTimeUnixNano": at(start),
        "endTimeUnixNano": at(end),
        "attributes": attributes(pairs or {}),
        "events": [
            {"name": event, "timeUnixNano": at(when), "attributes": attributes(more)}
            for event, when, more in events
        ],
    }


def resource_of(outer, inner, service, scopes):
    """A Resource with scopes of (attributes, items)."""
    return {
        "resource": {"attributes": attributes({"service.name": service, "zone": "eu"})},
        outer: [
            {"scope": {"name": "lib", "attributes": attributes(pairs)}, inner: found}
            for pairs, found in scopes
        ],
    }


def traces():
    failed = ("exception", 25, {"exception.type": "IOError"})
    shop = [
        (
            {"layer": "web"},
            [
                span("GET /", 2, 10, 30, {"method": "GET", "code": 200}, [failed, ("retry", 20, {})]),
                span("GET /", 2, 5, 31, {"method": "GET", "code": "200"}),
                span("POST /", 2, 12, 13, {"method": "POST", "code": 200, "zone": "own"}),
            ],
        ),
        (
            {},
            [
                span("query", 3, 0, 0, {"flags": [1, "a"], "weight": 0.5, "cached": True}),
                span("query", 3, 0, 0, {"flags": [1, "a"], "weight": 1, "cached": False}),
                span("query", 3, 0, 0, {"flags": {"k": "v"}, "weight": 0.5, "cached": "true"}),
            ],
        ),
    ]
    mail = [({}, [span("send", 4, 7, 0, {}, [failed])])]
    return {
        "resourceSpans": [
            resource_of("scopeSpans", "spans", "shop", shop),
            resource_of("scopeSpans", "spans", "idle", []),
            resource_of("scopeSpans", "spans", "mail", mail),
        ]
    }


def metrics():
    def point(when, pairs=None, **more):
        return {"timeUnixNano": at(when), "attributes": attributes(pairs or {}), **more}

    shop = [
        (
            {"layer": "web"},
            [
                {
                    "name": "requests",
                    "sum": {
                        "dataPoints": [
                            point(9, {"method": "GET"}, asInt="3"),
                            point(4, {"method": "POST"}, asInt="4"),
                            point(0, {}, asDouble=1.5),
                        ],
                        "aggregationTemporality": 2,
                        "isMonotonic": True,
                    },
                },
                {"name": "used", "gauge": {"dataPoints": [point(6, {"method": "GET"}, asInt="1")]}},
            ],
        ),
        (
            {},
            [
                {
                    "name": "took",
                    "histogram": {
                        "dataPoints": [
                            point(7, {"method": "GET"}, count="2", bucketCounts=["1", "1"], explicitBounds=[1])
                        ],
                        "aggregationTemporality": 1,
                    },
                },
                {
                    "name": "spread",
                    "exponentialHistogram": {
                        "dataPoints": [point(8, {"method": "PUT"}, count="1", zeroCount="1")],
                        "aggregationTemporality": 1,
                    },
                },
                {"name": "old", "summary": {"dataPoints": [point(3, {"zone": "own"}, count="1", sum=2.0)]}},
            ],
        ),
    ]
    return {"resourceMetrics": [resource_of("scopeMetrics", "metrics", "shop", shop)]}


def logs():
    def record(when, severity, body, pairs):
        return {
            "timeUnixNano": at(when),
            "severityNumber": severity,
            "body": value(body),
            "attributes": attributes(pairs),
        }

    shop = [
        ({"layer": "web"}, [record(5, 9, "started", {}), record(2, 17, "broken", {"code": 7})]),
        ({}, [record(0, 17, {"text": "broken"}, {"code": 7, "layer": "db"})]),
    ]
    return {"resourceLogs": [resource_of("scopeLogs", "logRecords", "shop", shop)]}


def profiles():
    def profile(kind, when, indices):
        return {
            "sampleType": {"typeStrindex": kind},
            "timeUnixNano": at(when),
            "samples": [{"values": ["5"]}],
            "attributeIndices": indices,
        }

    found = [profile(1, 7, [1]), profile(2, 4, [2]), profile(1, 9, [])]
    return {
        "resourceProfiles": [
            resource_of("scopeProfiles", "profiles", "shop", [({"layer": "web"}, found)])
        ],
        "dictionary": {
            "mappingTable": [{}],
            "locationTable": [{}],
            "functionTable": [{}],
            "linkTable": [{}],
            "stackTable": [{}],
            "stringTable": ["", "cpu", "wall", "thread"],
            "attributeTable": [
                {"value": {}},
                {"keyStrindex": 3, "value": value("main")},
                {"keyStrindex": 3, "value": value("idle")},
            ],
        },
    }


def many_traces():
    """Spans of all kinds of attributes, the same ones each time."""
    chosen = random.Random(14)
    values = ("a", "b", 1, 2, 1.5, True, ["a"], {"k": 1}, "")

    def pairs():
        return {key: chosen.choice(values) for key in ("a", "b", "c") if chosen.randrange(3)}

    def one():
        events = [(chosen.choice(("e", "f")), chosen.randrange(99), pairs()) for _ in range(chosen.randrange(3))]
        return span(chosen.choice("xyz"), chosen.randrange(6), chosen.randrange(99), chosen.randrange(99), pairs(), events)

    return {
        "resourceSpans": [
            resource_of(
                "scopeSpans",
                "spans",
                f"shop-{number}",
                [(pairs(), [one() for _ in range(chosen.randrange(30))]) for _ in range(3)],
            )
            for number in range(8)
        ]
    }


@dataclass
class Row:
    """`keys` of the connector; `counts`: of each service, metric and attributes. None: only that both
    count alike."""

    name: str
    signal: str
    keys: str
    counts: dict | None


def series(service, metric, **pairs):
    return service, metric, json.dumps(attributes(pairs))


SPANS, EVENTS = "trace.span.count", "trace.span.event.count"
METRICS, POINTS = "metric.count", "metric.datapoint.count"
NO_EVENTS = "spanevents: {none: {conditions: ['false']}}"
NO_POINTS = "datapoints: {none: {conditions: ['false']}}"
NO_METRICS = "metrics: {none: {conditions: ['false']}}"
OF_TRACES = {
    series("shop", SPANS): 6,
    series("shop", EVENTS): 2,
    series("mail", SPANS): 1,
    series("mail", EVENTS): 1,
}
ROWS = [
    Row("defaults of traces", "traces", "", OF_TRACES),
    Row("empty sections are the defaults", "traces", "{spans: {}, spanevents: {}}", OF_TRACES),
    Row(
        "any of several conditions",
        "traces",
        "{spans: {n: {description: chosen, conditions: ['name == \"send\"', "
        f"'span.attributes[\"code\"] == 200']}}}}, {NO_EVENTS}}}",
        {series("shop", "n"): 2, series("mail", "n"): 1},
    ),
    Row(
        "conditions on the span, scope and resource of an event",
        "traces",
        "{spans: {none: {conditions: ['false']}}, spanevents: {n: {conditions: ['spanevent.name == \"retry\" and "
        "scope.attributes[\"layer\"] == \"web\"', 'span.name == \"send\" and resource.attributes[\"zone\"] == \"eu\"']}}}",
        {series("shop", "n"): 1, series("mail", "n"): 1},
    ),
    Row(
        "attributes of the record, else of its scope, else of its resource, else the default",
        "traces",
        "{spans: {n: {attributes: [{key: method, default_value: none}, {key: zone}, {key: layer, default_value: 7}]}}, "
        f"{NO_EVENTS}}}",
        {
            series("shop", "n", method="GET", zone="eu", layer="web"): 2,
            series("shop", "n", method="POST", zone="own", layer="web"): 1,
            series("shop", "n", method="none", zone="eu", layer=7): 3,
            series("mail", "n", method="none", zone="eu", layer=7): 1,
        },
    ),
    Row(
        "records without an attribute are not counted",
        "traces",
        f"{{spans: {{n: {{attributes: [{{key: code}}, {{key: method}}]}}}}, {NO_EVENTS}}}",
        {
            series("shop", "n", code=200, method="GET"): 1,
            series("shop", "n", code="200", method="GET"): 1,
            series("shop", "n", code=200, method="POST"): 1,
        },
    ),
    Row(
        "values of all types",
        "traces",
        f"{{spans: {{n: {{attributes: [{{key: flags}}, {{key: weight}}, {{key: cached}}]}}}}, {NO_EVENTS}}}",
        {
            series("shop", "n", flags=[1, "a"], weight=0.5, cached=True): 1,
            series("shop", "n", flags=[1, "a"], weight=1, cached=False): 1,
            series("shop", "n", flags={"k": "v"}, weight=0.5, cached="true"): 1,
        },
    ),
    Row(
        "defaults of all types",
        "traces",
        "{spans: {n: {attributes: [{key: one, default_value: [1, b]}, {key: two, default_value: {k: 1.5}}, "
        f"{{key: three, default_value: true}}]}}}}, {NO_EVENTS}}}",
        {
            series("shop", "n", one=[1, "b"], two={"k": 1.5}, three=True): 6,
            series("mail", "n", one=[1, "b"], two={"k": 1.5}, three=True): 1,
        },
    ),
    Row(
        "events by attributes of their own and a condition",
        "traces",
        "{spans: {none: {conditions: ['false']}}, spanevents: {n: {conditions: ['span.kind == SPAN_KIND_SERVER'], "
        "attributes: [{key: exception.type}]}, all: {attributes: [{key: exception.type, default_value: ''}]}}}",
        {
            series("shop", "n", **{"exception.type": "IOError"}): 1,
            series("shop", "all", **{"exception.type": "IOError"}): 1,
            series("shop", "all", **{"exception.type": ""}): 1,
            series("mail", "all", **{"exception.type": "IOError"}): 1,
        },
    ),
    Row(
        "an attribute that is named twice counts nothing",
        "traces",
        f"{{spans: {{n: {{attributes: [{{key: zone}}, {{key: zone}}]}}}}, {NO_EVENTS}}}",
        {},
    ),
    Row("defaults of metrics", "metrics", "", {series("shop", METRICS): 5, series("shop", POINTS): 7}),
    Row(
        "conditions of metrics",
        "metrics",
        "{metrics: {sums: {conditions: ['metric.type == METRIC_DATA_TYPE_SUM']}, "
        f"named: {{conditions: ['IsMatch(name, \"^(t|o)\")']}}}}, {NO_POINTS}}}",
        {series("shop", "sums"): 1, series("shop", "named"): 2},
    ),
    Row(
        "data points by attributes",
        "metrics",
        f"{{{NO_METRICS}, datapoints: {{n: {{attributes: [{{key: method, default_value: none}}, {{key: zone}}]}}}}}}",
        {
            series("shop", "n", method="GET", zone="eu"): 3,
            series("shop", "n", method="POST", zone="eu"): 1,
            series("shop", "n", method="PUT", zone="eu"): 1,
            series("shop", "n", method="none", zone="eu"): 1,
            series("shop", "n", method="none", zone="own"): 1,
        },
    ),
    Row(
        "conditions of data points",
        "metrics",
        f"{{{NO_METRICS}, datapoints: {{n: {{conditions: ['datapoint.value_int >= 3', 'metric.name == \"took\"']}}}}}}",
        {series("shop", "n"): 3},
    ),
    Row("defaults of log records", "logs", "", {series("shop", "log.record.count"): 3}),
    Row(
        "log records by severity and attributes",
        "logs",
        "{logs: {bad: {conditions: ['severity_number >= SEVERITY_NUMBER_ERROR'], attributes: [{key: code}, {key: layer}]}, "
        "text: {conditions: ['IsString(log.body)']}}}",
        {
            series("shop", "bad", code=7, layer="web"): 1,
            series("shop", "bad", code=7, layer="db"): 1,
            series("shop", "text"): 2,
        },
    ),
    Row("defaults of profiles", "profiles", "", {series("shop", "profile.count"): 3}),
    Row(
        "profiles by type and attributes",
        "profiles",
        "{profiles: {n: {attributes: [{key: thread, default_value: none}, {key: layer}]}}}",
        {
            series("shop", "n", thread="main", layer="web"): 1,
            series("shop", "n", thread="idle", layer="web"): 1,
            series("shop", "n", thread="none", layer="web"): 1,
        },
    ),
]
MANY = [
    Row(
        "many spans",
        "traces",
        "{spans: {all: {}, by: {attributes: [{key: a}, {key: b, default_value: none}]}, server: {conditions: "
        "['kind == SPAN_KIND_SERVER'], attributes: [{key: c}]}}, spanevents: {e: {conditions: ['name == \"e\"'], "
        "attributes: [{key: a, default_value: 0}]}, f: {attributes: [{key: b}, {key: service.name}]}}}",
        None,
    ),
]
REQUESTS = {"traces": traces, "metrics": metrics, "logs": logs, "profiles": profiles}
# What a configuration has, and a part of what both answer.
WRONG = [
    ("spans: {'': {}}", "metric name missing"),
    ("spans: {n: {conditions: ['nam == 1']}}", "nam"),
    ("spans: {n: {conditions: ['name ==']}}", "condition"),
    ("spanevents: {n: {conditions: ['Nothing(name)']}}", "Nothing"),
    ("metrics: {n: {attributes: [{key: a}]}}", "metrics attributes not supported"),
    ("datapoints: {n: {attributes: [{default_value: 3}]}}", "attribute key missing"),
    ("logs: {n: {conditions: ['span.name == \"a\"']}}", "span"),
    ("logs: [n]", "logs"),
    ("logs: {n: {conditions: 7.5e}}", "condition"),
]


def config(rows, http, sink):
    """A connector, an exporter and a pipeline for every row."""
    connectors, exporters, pipelines = [], [], []
    behind = {}
    for index, row in enumerate(rows):
        connectors.append(f"  count/{index}: {row.keys}\n")
        exporters.append(
            f"  otlp_http/{index}:\n    metrics_endpoint: {sink.url}/rows/{index}\n    encoding: json\n"
            + case.DIRECT
            + case.NO_RETRY
            + case.UNCOMPRESSED
        )
        behind.setdefault(row.signal, []).append(f"count/{index}")
        pipelines.append(
            f"    metrics/{index}: {{receivers: [count/{index}], exporters: [otlp_http/{index}]}}\n"
        )
    for signal, names in behind.items():
        pipelines.append(f"    {signal}: {{receivers: [otlp], exporters: [{', '.join(names)}]}}\n")
    return (
        f"receivers:\n  otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{http}'}}}}}}\n"
        + "connectors:\n"
        + "".join(connectors)
        + "exporters:\n"
        + "".join(exporters)
        + f"service:\n{case.QUIET}  pipelines:\n"
        + "".join(pipelines)
    )


def time_of(text):
    """A time of the data, or that of now."""
    return text if int(text) < DATA_NS + 1000 else "now"


def points_of(requests):
    """Each series: (service, metric, attributes), and all else that is said of it."""
    found = {}
    for request in requests:
        for resource in request.get("resourceMetrics", []):
            pairs = resource["resource"]["attributes"]
            (scope,) = resource["scopeMetrics"]
            for metric in scope["metrics"]:
                total = metric["sum"]
                for point in total["dataPoints"]:
                    key = (
                        pairs[0]["value"]["stringValue"],
                        metric["name"],
                        json.dumps(point.get("attributes", [])),
                    )
                    assert key not in found, key
                    found[key] = (
                        json.dumps(pairs),
                        scope["scope"],
                        metric.get("description"),
                        metric.get("unit"),
                        total["aggregationTemporality"],
                        total["isMonotonic"],
                        time_of(point["startTimeUnixNano"]),
                        time_of(point["timeUnixNano"]),
                        int(point["asInt"]),
                    )
    return found


class Count(case.Case):
    def start(self, rows, executable=None):
        self.http = free_port()
        self.back_end = self.sink()
        text = config(rows, self.http, self.back_end)
        if executable:
            return self.server(text, executable=executable, arguments=GATES).wait_until_ready()
        return self.daemon(text)

    def send(self, signal, request):
        body = json.dumps(request).encode()
        return client.request(self.http, "POST", PATHS[signal], body, JSON).status

    def counted(self, rows, requests, executable):
        """Of each row, what its back-end got."""
        server = self.start(rows, executable)
        for signal, request in requests.items():
            self.assertEqual(self.send(signal, request), 200, (executable, signal))
        found = [[] for _ in rows]
        for request in self.back_end.accepted():
            found[int(request.path.rsplit("/", 1)[1])].append(json.loads(request.payload))
        server.stop()
        return [points_of(requests) for requests in found]

    def test_both_count_as_the_table_says(self):
        requests = {signal: make() for signal, make in REQUESTS.items()}
        first = None
        for executable in peers.systems():
            found = self.counted(ROWS, requests, executable)
            first = first or found
            for row, ours, all_of in zip(ROWS, first, found):
                with self.subTest(row.name, executable=executable):
                    counts = {key: rest[-1] for key, rest in all_of.items()}
                    self.assertEqual(counts, row.counts)
                    self.assertEqual(all_of, ours)

    def test_both_count_many_spans_alike(self):
        request = {"traces": many_traces()}
        first = None
        for executable in peers.systems():
            (found,) = self.counted(MANY, request, executable)
            first = first or found
            self.assertGreater(len(found), 200)
            self.assertEqual(found, first)
            for key, rest in found.items():
                self.assertEqual(rest[1]["name"], SCOPE, key)

    def test_a_client_hears_what_became_of_the_counts(self):
        """A condition that fails and a metric without data refuse the request, which may be sent again."""
        rows = [
            Row("", "traces", "", None),
            Row("", "logs", "{logs: {n: {conditions: ['Int(attributes[\"code\"][\"no\"]) == 1']}}}", None),
            Row("", "metrics", "", None),
        ]
        without_data = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m"}]}]}]}
        first = None
        for executable in peers.systems():
            server = self.start(rows, executable)
            seen = [self.send("logs", logs()), self.send("metrics", without_data)]
            for reply in (Reply(400), Reply(503), Reply()):
                self.back_end.respond_with(reply)
                seen.append(self.send("traces", traces()))
            server.stop()
            first = first or seen
            self.assertEqual(first[2:], [400, 503, 200])
            self.assertEqual(seen, first, executable)

    def test_wrong_configurations_are_refused(self):
        text = (
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:4318'}}}}}}}}\n"
            "connectors: {{count: {{{keys}}}}}\nexporters: {{nop: }}\nservice:\n  pipelines:\n"
            "    traces: {{receivers: [otlp], exporters: [count]}}\n"
            "    metrics: {{receivers: [count], exporters: [nop]}}\n"
        )
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "config.yaml")
            for executable in peers.systems():
                # What the Go collector ignores.
                unknown = ("span: {n: {}}", "" if executable else "span")
                for keys, part in [*WRONG, unknown, ("", "")]:
                    is_wrong = keys and part
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text.format(keys=keys))
                    done = subprocess.run(
                        [executable or process.binary(), "validate", f"--config={path}"],
                        capture_output=True,
                        text=True,
                        timeout=process.STOP_WITHIN_S,
                    )
                    with self.subTest(keys, executable=executable):
                        self.assertEqual(done.returncode, 1 if is_wrong else 0, done.stderr)
                        self.assertIn(part, done.stderr)


if __name__ == "__main__":
    case.main()
