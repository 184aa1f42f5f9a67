# SPDX-License-Identifier: Apache-2.0
"""exceptions: events of spans over OTLP, counted in the prometheus exporter and logged to a sink."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from support import case, client, otlp, process
from support.metrics import Metrics, assert_conserved
from support.ports import free_port
from support.sink import Reply

WITHIN_S = 30
TIME_NS = 1_700_000_000_000_000_000


def config(ports, backend, keys=""):
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      http:\n        endpoint: 127.0.0.1:{ports['http']}\n"
        f"connectors:\n  exceptions:\n{keys}"
        f"exporters:\n  prometheus:\n    endpoint: 127.0.0.1:{ports['scrape']}\n"
        "    enable_open_metrics: true\n"
        f"  otlp_http:\n    endpoint: {backend}\n{case.DIRECT}{case.NO_RETRY}"
        f"service:\n  lanes: 2\n{case.metrics_service(ports['own'])}  pipelines:\n"
        "    traces:\n      receivers: [otlp]\n      exporters: [exceptions]\n"
        "    metrics:\n      receivers: [exceptions]\n      exporters: [prometheus]\n"
        "    logs:\n      receivers: [exceptions]\n      exporters: [otlp_http]\n"
    )


def failed_span(serial, exceptions=1, text=""):
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    otlp.add_attributes(group.resource.attributes, {"service.name": "shop", "zone": "eu"})
    scope = group.scope_spans.add()
    scope.scope.name = "lib"
    span = scope.spans.add(
        trace_id=serial.to_bytes(16, "big"),
        span_id=serial.to_bytes(8, "big"),
        name="GET /cart",
        kind=Span.SPAN_KIND_SERVER,
        status=Status(code=Status.STATUS_CODE_ERROR),
    )
    otlp.add_attributes(span.attributes, {"user": 7, "text": text})
    for index in range(exceptions):
        event = span.events.add(name="exception", time_unix_nano=TIME_NS + index)
        otlp.add_attributes(
            event.attributes,
            {
                "exception.type": "IOError",
                "exception.message": "no cart",
                "exception.stacktrace": "at main\n at run\n",
            },
        )
        span.events.add(name="retry")
    return request.SerializeToString()


class Exceptions(case.Case):
    def setUp(self):
        self.ports = {name: free_port() for name in ("http", "scrape", "own")}
        self.backend = self.sink()

    def post(self, body):
        return client.post(self.ports["http"], "traces", body).status

    def wait_for(self, value, **labels):
        def is_shown():
            page = Metrics(self.ports["scrape"])
            return page.has("exceptions_total", **labels) and page.sum(
                "exceptions_total", **labels
            ) == value

        process.poll_until(is_shown, WITHIN_S, f"exceptions_total {labels} is {value}")

    def records(self):
        found = []
        for request in self.backend.accepted("logs"):
            for group in otlp.decode("logs", request.payload).resource_logs:
                for scope in group.scope_logs:
                    found.extend((scope.scope.name, record) for record in scope.log_records)
        return found

    def test_they_are_counted_and_logged(self):
        self.daemon(config(self.ports, self.backend.url, "    exemplars: {enabled: true}\n"))
        for serial in range(1, 21):
            self.assertEqual(self.post(failed_span(serial, exceptions=2)), 200)
        self.wait_for(
            40,
            service_name="shop",
            span_name="GET /cart",
            span_kind="SPAN_KIND_SERVER",
            status_code="STATUS_CODE_ERROR",
            exception_type="IOError",
            exception_message="no cart",
        )
        records = self.records()
        self.assertEqual(len(records), 40)
        scope, record = records[0]
        self.assertEqual(scope, "lib")
        self.assertEqual(record.severity_text, "ERROR")
        self.assertEqual(record.severity_number, 17)
        self.assertEqual(record.time_unix_nano, TIME_NS)
        self.assertEqual(len(record.trace_id), 16)
        values = {pair.key: pair.value for pair in record.attributes}
        self.assertEqual(
            list(values),
            [
                "user",
                "text",
                "span.name",
                "span.kind",
                "status.code",
                "service.name",
                "exception.type",
                "exception.message",
                "exception.stacktrace",
            ],
        )
        self.assertEqual(values["user"].int_value, 7)
        self.assertEqual(values["exception.stacktrace"].string_value, "at main\n at run\n")

    def test_a_sender_hears_what_becomes_of_the_logs(self):
        self.daemon(config(self.ports, self.backend.url))
        self.backend.respond_first([Reply(400), Reply(503)])
        self.assertEqual(self.post(failed_span(1)), 400)
        self.assertEqual(self.post(failed_span(2)), 503)
        self.assertEqual(self.post(failed_span(3)), 200)
        self.assertEqual(self.post(failed_span(4, exceptions=0)), 200)
        # Traces go to two connectors, to metrics and to logs.
        self.assertEqual(assert_conserved(self, self.ports["own"], "traces"), (8, 6, 2, 0, 0))
        self.assertEqual(assert_conserved(self, self.ports["own"], "logs"), (3, 1, 2, 0, 0))

    def test_large_requests(self):
        self.daemon(config(self.ports, self.backend.url))
        self.assertEqual(self.post(failed_span(1, exceptions=3, text="x" * (2 << 20))), 200)
        self.assertEqual(len(self.records()), 3)
        self.wait_for(3, exception_type="IOError")

    def test_dimensions_have_defaults(self):
        keys = "    dimensions: [{name: zone}, {name: tier, default: free}]\n"
        self.daemon(config(self.ports, self.backend.url, keys))
        self.assertEqual(self.post(failed_span(1)), 200)
        self.wait_for(1, zone="eu", tier="free")


if __name__ == "__main__":
    case.main()
