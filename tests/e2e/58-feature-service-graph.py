# SPDX-License-Identifier: Apache-2.0
"""service_graph: spans over OTLP on two lanes, the graph as the prometheus exporter shows it."""

import subprocess

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from support import case, client, otlp, process, prometheus
from support.metrics import Metrics
from support.ports import free_port

WITHIN_S = 30
BASE_NS = 1_700_000_000_000_000_000
MS = 1_000_000
CLIENT, SERVER = Span.SPAN_KIND_CLIENT, Span.SPAN_KIND_SERVER
PRODUCER, CONSUMER = Span.SPAN_KIND_PRODUCER, Span.SPAN_KIND_CONSUMER


def config(ports, name="service_graph", keys=""):
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      grpc:\n        endpoint: 127.0.0.1:{ports['grpc']}\n"
        f"      http:\n        endpoint: 127.0.0.1:{ports['http']}\n"
        f"connectors:\n  {name}:\n    metrics_flush_interval: 100ms\n{keys}"
        f"exporters:\n  prometheus:\n    endpoint: 127.0.0.1:{ports['scrape']}\n"
        f"service:\n  lanes: 2\n{case.metrics_service(ports['own'])}  pipelines:\n"
        f"    traces:\n      receivers: [otlp]\n      exporters: [{name}]\n"
        f"    metrics:\n      receivers: [{name}]\n      exporters: [prometheus]\n"
    )


def span(service, kind, span_id, parent=0, ms=1, trace=1, attributes=None, resource=None, **more):
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    otlp.add_attributes(group.resource.attributes, {"service.name": service, **(resource or {})})
    one = group.scope_spans.add().spans.add(
        trace_id=trace.to_bytes(16, "big"),
        span_id=span_id.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name="x",
        kind=kind,
        start_time_unix_nano=BASE_NS,
        end_time_unix_nano=BASE_NS + ms * MS,
        **more,
    )
    otlp.add_attributes(one.attributes, attributes or {})
    return request.SerializeToString()


class ServiceGraph(case.Case):
    def setUp(self):
        self.ports = {name: free_port() for name in ("grpc", "http", "scrape", "own")}

    def send(self, *bodies):
        """Each on a connection of its own, so that both lanes get some."""
        for body in bodies:
            self.assertEqual(client.post(self.ports["http"], "traces", body).status, 200)

    def shown(self, name, **labels):
        """The sum of the series of that name with these labels; None: there is none."""
        page = Metrics(self.ports["scrape"])
        return page.sum(name, **labels) if page.has(name, **labels) else None

    def wait_for(self, value, name, **labels):
        process.poll_until(
            lambda: self.shown(name, **labels) == value, WITHIN_S, f"{name} {labels} is {value}"
        )

    def test_the_graph_of_a_shop(self):
        self.daemon(config(self.ports, keys="    dimensions: [zone]\n    store: {ttl: 60s}\n"))
        failed = Status(code=Status.STATUS_CODE_ERROR)
        for trace in range(1, 41):
            self.send(
                span("web", CLIENT, 1, ms=300, trace=trace),
                span("shop", SERVER, 2, 1, ms=90, trace=trace, resource={"zone": "a"}),
                span("shop", CLIENT, 3, 2, trace=trace, attributes={"db.name": "orders"}),
                span("shop", PRODUCER, 4, 2, trace=trace),
                # The other end comes first.
                span("pay", SERVER, 6, 5, trace=trace, **({"status": failed} if trace <= 4 else {})),
                span("shop", CLIENT, 5, 2, trace=trace),
                span("mail", CONSUMER, 7, 4, trace=trace),
            )
        total = "traces_service_graph_request_total"
        to_shop = {"client": "web", "server": "shop", "server_zone": "a", "connection_type": ""}
        self.wait_for(40, total, **to_shop)
        self.wait_for(40, total, client="shop", server="mail", connection_type="messaging_system")
        self.wait_for(40, total, client="shop", server="orders", connection_type="database")
        self.wait_for(36, total, client="shop", server="pay", failed="false")
        self.wait_for(4, total, client="shop", server="pay", failed="true")
        self.wait_for(4, "traces_service_graph_request_failed_total", server="pay")
        self.assertIsNone(self.shown("traces_service_graph_request_failed_total", server="shop"))
        for side, seconds, bucket in (("client", 12, "0.4"), ("server", 3.6, "0.1")):
            name = f"traces_service_graph_request_{side}_seconds"
            self.wait_for(40, f"{name}_count", **to_shop)
            self.assertAlmostEqual(self.shown(f"{name}_sum", **to_shop), seconds)
            self.assertEqual(self.shown(f"{name}_bucket", le=bucket, **to_shop), 40)
        own = Metrics(self.ports["own"])
        self.assertEqual(own.sum("otelcol_connector_servicegraph_total_edges"), 160)
        self.assertEqual(own.sum("otelcol_connector_servicegraph_dropped_spans"), 0)
        self.assertEqual(own.sum("spanflame_items_received", signal="traces"), 280)

    def test_services_that_send_no_spans(self):
        keys = "    store: {ttl: 100ms}\n    store_expiration_loop: 50ms\n    virtual_node_extra_label: true\n"
        self.daemon(config(self.ports, keys=keys))
        self.send(
            span("web", SERVER, 1),
            span("web", CLIENT, 2, 1, attributes={"peer.service": "bank"}),
            span("web", CLIENT, 3, 1),
            span("shop", SERVER, 4, 99),
        )
        total = "traces_service_graph_request_total"
        virtual = {"connection_type": "virtual_node"}
        self.wait_for(1, total, client="user", server="web", virtual_node="client", **virtual)
        self.wait_for(1, total, client="web", server="bank", virtual_node="server", **virtual)
        self.wait_for(1, total, client="web", server="unknown", virtual_node="server", **virtual)
        self.assertIsNone(self.shown(total, server="shop"))
        own = Metrics(self.ports["own"])
        self.assertEqual(own.sum("otelcol_connector_servicegraph_expired_edges"), 4)

    def test_the_old_name_and_exponential_histograms(self):
        keys = "    exponential_histogram_max_size: 160\n"
        daemon = self.daemon(config(self.ports, "servicegraph", keys))
        self.assertRegex(daemon.log(), "servicegraph.*service_graph")
        self.send(span("web", CLIENT, 1, ms=300), span("shop", SERVER, 2, 1, ms=100))
        self.wait_for(1, "traces_service_graph_request_client_seconds_count", client="web")
        self.assertAlmostEqual(
            self.shown("traces_service_graph_request_client_seconds_sum", client="web"), 0.3
        )

    def test_promtool_finds_no_fault(self):
        promtool = prometheus.need("promtool")
        self.daemon(config(self.ports))
        self.send(span("web", CLIENT, 1, ms=300), span("shop", SERVER, 2, 1, ms=100))
        self.wait_for(1, "traces_service_graph_request_total", client="web")
        text = client.get(self.ports["scrape"], "/metrics").body
        checked = subprocess.run(
            [promtool, "check", "metrics"], input=text, capture_output=True, timeout=30
        )
        complaints = [
            line for line in checked.stderr.decode().splitlines() if "no help text" not in line
        ]
        self.assertEqual(complaints, [], text.decode())


if __name__ == "__main__":
    case.main()
