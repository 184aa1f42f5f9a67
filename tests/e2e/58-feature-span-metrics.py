# SPDX-License-Identifier: Apache-2.0
"""span_metrics: the same spans to the daemon and to the Go collector, and metrics for Grafana behind
the prometheus exporter."""

import random

from support import case, client, otlp, peers, process, prometheus
from support.ports import free_port

ARRIVES_WITHIN_S = 30
CONFIG = """\
receivers:
  otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{http}'}}}}}}
connectors:
  span_metrics:
    metrics_flush_interval: {interval}
{options}exporters:
{exporters}service:
{service}  pipelines:
    traces: {{receivers: [otlp], exporters: [span_metrics]}}
    metrics: {{receivers: [span_metrics], exporters: [{exporter}]}}
"""
OPTIONS = (
    "",
    """\
    histogram: {unit: s, explicit: {buckets: [1ms, 50ms, 1s]}}
    dimensions: [{name: http.method, default: none}, {name: region}]
    calls_dimensions: [{glob: 'http.*'}]
    exclude_dimensions: [span.kind]
    resource_metrics_key_attributes: [service.name]
    namespace: spans
""",
    """\
    histogram: {exponential: {max_size: 20}, dimensions: [{name: http.method}]}
    events: {enabled: true, dimensions: [{name: exception.type}]}
    include_instrumentation_scope: [scope-0]
    enable_metrics_sampling_method: true
""",
)
GATES = (
    "connector.spanmetrics.excludeResourceMetrics,connector.spanmetrics.legacyMetricNames,"
    "-connector.spanmetrics.includeCollectorInstanceID,spanmetrics.statusCodeConvention.useOtelPrefix"
)


def requests(count, spans):
    """The same ones each time."""
    chosen = random.Random(7)
    for number in range(count):
        request = otlp.traces(
            spans=spans,
            scopes=2,
            resource={"service.name": f"shop-{number % 3}", "region": "eu"},
        )
        for scope_spans in request.resource_spans[0].scope_spans:
            for span in scope_spans.spans:
                span.name = chosen.choice(("GET /", "GET /cart", "checkout"))
                span.kind = chosen.randrange(6)
                span.status.code = chosen.randrange(3)
                span.trace_state = chosen.choice(("", "", "ot=th:8", "a=b"))
                span.end_time_unix_nano = span.start_time_unix_nano + chosen.randrange(10**10)
                if chosen.randrange(2):
                    otlp.add_attributes(span.attributes, {"http.method": chosen.choice(("GET", 5))})
                if chosen.randrange(4) == 0:
                    event = span.events.add(name="exception")
                    otlp.add_attributes(event.attributes, {"exception.type": "Oops"})
        yield request.SerializeToString()


def points_of(metric):
    data = getattr(metric, metric.WhichOneof("data"))
    for point in data.data_points:
        labels = {pair.key: otlp.value_of(pair.value) for pair in point.attributes}
        if "collector.instance.id" in labels:
            labels["collector.instance.id"] = "any"
        key = (metric.name, metric.unit, str(sorted(labels.items())))
        if metric.WhichOneof("data") == "sum":
            yield key, point.as_int
        elif metric.WhichOneof("data") == "histogram":
            bounds = tuple(point.explicit_bounds)
            yield key, (point.count, round(point.sum, 6), bounds, tuple(point.bucket_counts))
        else:
            counts = tuple(point.positive.bucket_counts)
            yield (
                key,
                (point.count, point.scale, point.zero_count, point.positive.offset, counts),
            )


def latest(received):
    """The last value of each series."""
    values = {}
    for one in received:
        for resource in otlp.decode("metrics", one.payload).resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for key, value in points_of(metric):
                        attributes = otlp.attributes_of(resource.resource.attributes)
                        values[str(attributes), key] = value
    return values


class SpanMetrics(case.Case):
    def config(self, exporters, exporter, options="", interval="200ms", service=""):
        self.http = free_port()
        return CONFIG.format(
            http=self.http,
            options=options,
            interval=interval,
            exporters=exporters,
            exporter=exporter,
            service=case.QUIET + service,
        )

    def to_sink(self, **settings):
        self.back_end = self.sink()
        exporters = f"  otlp_http: {{endpoint: '{self.back_end.url}', compression: none}}\n"
        return self.config(exporters, "otlp_http", **settings)

    def send(self, bodies):
        for body in bodies:
            self.assertEqual(client.post(self.http, "traces", body).status, 200)

    def settled(self, series):
        """The values once every series has had two more flushes after the last span: new ones are
        zero in the first."""
        before = len(self.back_end.accepted("metrics"))
        self.back_end.wait(lambda found: len(found) >= before + 3)
        process.poll_until(
            lambda: len(latest(self.back_end.accepted("metrics"))) >= series,
            ARRIVES_WITHIN_S,
            f"{series} series are at the back-end",
        )
        return latest(self.back_end.accepted("metrics"))

    def test_metrics_are_those_of_the_go_collector(self):
        bodies = list(requests(12, 40))
        results = {}
        for executable in peers.systems():
            for number, (options, gates) in enumerate([*((o, "") for o in OPTIONS), ("", GATES)]):
                with self.subTest(executable=executable, options=options, gates=gates):
                    config = self.to_sink(options=options)
                    arguments = [f"--feature-gates={gates}"]
                    if executable:
                        server = self.server(config, executable=executable, arguments=arguments)
                        server.wait_until_ready()
                    else:
                        server = self.daemon(config, arguments=arguments)
                    self.send(bodies)
                    values = self.settled(10)
                    self.assertGreater(len(values), 50)
                    self.assertEqual(results.setdefault(number, values), values)
                    server.stop()

    def test_lanes_count_into_the_same_series(self):
        bodies = list(requests(12, 40))
        results = []
        for lanes in (1, 3):
            server = self.daemon(self.to_sink(service=f"  lanes: {lanes}\n"))
            self.send(bodies)  # each over a connection of its own
            results.append(self.settled(10))
            server.stop()
        self.assertEqual(results[0], results[1])

    def test_a_stop_sends_what_was_counted(self):
        server = self.daemon(self.to_sink(interval="1h"))
        self.send(requests(1, 40))
        self.assertEqual(self.back_end.accepted("metrics"), [])
        self.assertEqual(server.stop(), 0)
        values = latest(self.back_end.accepted("metrics"))
        durations = [value for key, value in values.items() if key[1][0].endswith(".duration")]
        counted = sum(value[0] for value in durations)
        self.assertGreaterEqual(counted, 40)

    def test_names_that_grafana_expects(self):
        scrape = free_port()
        exporters = f"  prometheus: {{endpoint: '127.0.0.1:{scrape}'}}\n"
        self.daemon(self.config(exporters, "prometheus", options="    naming: tempo\n"))
        request = otlp.traces(spans=4, resource={"service.name": "shop"})
        for span in request.resource_spans[0].scope_spans[0].spans:
            span.name, span.kind = "GET /", 2
            span.end_time_unix_nano = span.start_time_unix_nano + 3_000_000
        self.send([request.SerializeToString()])
        labels = 'service="shop",span_kind="SPAN_KIND_SERVER",span_name="GET /",status_code="STATUS_CODE_UNSET"'

        def shown(name, value):
            page = client.get(scrape, "/metrics").body.decode()
            lines = [line for line in page.splitlines() if line.startswith(name + "{")]
            return any(
                all(label in line for label in labels.split(",")) and line.endswith(f" {value}")
                for line in lines
            )

        for name, value in (
            ("traces_spanmetrics_calls_total", 4),
            ("traces_spanmetrics_latency_count", 4),
            ("traces_spanmetrics_latency_sum", 0.012),
            ("traces_spanmetrics_latency_bucket", 0),
        ):
            process.poll_until(
                lambda: shown(name, value), ARRIVES_WITHIN_S, f"{name} is {value}"
            )
        prometheus.need("prometheus")
        server = prometheus.Server(
            self,
            free_port(),
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n- job_name: test\n  honor_labels: true\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{scrape}']}}]\n",
        )
        for query, value in (
            ('sum(traces_spanmetrics_calls_total{service="shop"})', 4),
            (
                'histogram_quantile(1, sum by (le) (traces_spanmetrics_latency_bucket{service="shop"}))',
                0.004,
            ),
        ):
            server.wait_for(query, value)


if __name__ == "__main__":
    case.main()
