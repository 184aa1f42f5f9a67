# SPDX-License-Identifier: Apache-2.0
"""The prometheus exporter in front of a real Prometheus server, and promtool's opinion of it."""

import gzip
import subprocess

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from support import case, client, otlp, peers, prometheus
from support.ports import free_port


def metrics_config(http, scrape, exporter=""):
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      http:\n        endpoint: 127.0.0.1:{http}\n"
        f"exporters:\n  prometheus:\n    endpoint: 127.0.0.1:{scrape}\n{exporter}"
        f"service:\n{case.QUIET}"
        "  pipelines:\n    metrics:\n      receivers: [otlp]\n      exporters: [prometheus]\n"
    )


class RealServer(case.Case):
    def setUp(self):
        self.http, self.scrape = free_port(), free_port()

    def send(self, requests):
        body = prometheus.shop_metrics(requests)
        self.assertEqual(client.post(self.http, "metrics", body).status, 200)

    def test_it_has_what_was_sent(self):
        prometheus.need("prometheus")
        options = "    enable_open_metrics: true\n"
        self.daemon(metrics_config(self.http, self.scrape, options))
        self.send(41)
        server = prometheus.Server(
            self,
            free_port(),
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n- job_name: test\n  honor_labels: true\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{self.scrape}']}}]\n",
        )
        labels = 'job="eu/shop",instance="shop-1"'
        server.wait_for(f'http_requests_total{{http_route="/cart \\"x\\"\\n",{labels}}}', 41)
        self.send(42)
        server.wait_for(f'http_requests_total{{status="200",{labels}}}', 42)
        for query, value in (
            (f'queue_fill_ratio{{otel_scope_name="shop",{labels}}}', 0.25),
            (f'http_duration_seconds_bucket{{le="0.5",{labels}}}', 3),
            ("http_duration_seconds_sum", 1.5),
            ('gc_pause_milliseconds{quantile="0.5"}', 1.5),
            ("histogram_count(http_size_bytes)", 7),
            ("histogram_sum(http_size_bytes)", 70),
            ('target_info{host_name="h1"}', 1),
            ('queue_fill_ratio * on (job, instance) group_left(host_name) target_info', 0.25),
            ("up", 1),
        ):
            server.wait_for(query, value)

        # A server that asks for native histograms gets protobuf, in which exemplars travel too.
        server.wait_for_exemplar("http_requests_total", prometheus.TRACE_ID)

    def test_the_sdk_of_python(self):
        prometheus.need("prometheus")
        peers.need("python")
        self.daemon(metrics_config(self.http, self.scrape))
        sent = peers.emit(
            "python",
            protocol="http",
            endpoint=f"127.0.0.1:{self.http}",
            compression="gzip",
            service="e2e",
            spans=0,
            points=4,
            logs=0,
        )
        text = client.get(self.scrape, "/metrics").body.decode()
        self.assertEqual(text.count("# TYPE "), len(sent["metrics"]), text)
        self.assertIn('job="e2e"', text)

    def test_promtool_finds_no_fault(self):
        promtool = prometheus.need("promtool")
        for options in ("", "    namespace: web\n    const_labels: {zone: a}\n"):
            with self.subTest(options):
                self.http, self.scrape = free_port(), free_port()
                daemon = self.daemon(metrics_config(self.http, self.scrape, options))
                self.send(5)
                text = client.get(self.scrape, "/metrics").body
                checked = subprocess.run(
                    [promtool, "check", "metrics"], input=text, capture_output=True, timeout=30
                )
                # Its advice about names and help texts is not about us.
                complaints = [
                    line
                    for line in checked.stderr.decode().splitlines()
                    if "no help text" not in line and "base unit" not in line
                ]
                self.assertEqual(complaints, [], text.decode())
                self.assertEqual(daemon.stop(), 0)


class Scrapes(case.Case):
    def setUp(self):
        self.http, self.scrape = free_port(), free_port()

    def get(self, path="/metrics", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.request(self.scrape, "GET", path, headers=headers)

    def test_forms(self):
        options = "    enable_open_metrics: true\n    send_timestamps: true\n"
        self.daemon(metrics_config(self.http, self.scrape, options))
        self.assertEqual(self.get().body, b"")
        client.post(self.http, "metrics", prometheus.shop_metrics(3))
        plain = self.get()
        self.assertEqual(
            plain.headers["content-type"],
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
        )
        packed = self.get(accept_encoding="gzip")
        self.assertEqual(packed.headers["content-encoding"], "gzip")
        self.assertEqual(gzip.decompress(packed.body), plain.body)
        openmetrics = self.get(accept="application/openmetrics-text;version=1.0.0")
        self.assertIn("openmetrics-text; version=1.0.0", openmetrics.headers["content-type"])
        self.assertTrue(openmetrics.body.endswith(b"\n# EOF\n"))
        self.assertIn(b'# {trace_id="%s"} 1.0' % prometheus.TRACE_ID.hex().encode(), openmetrics.body)
        self.assertEqual(self.get("/other").status, 404)

    def test_many_series_at_once(self):
        """More than are written on the lane, each once, and while others come."""
        self.daemon(metrics_config(self.http, self.scrape))
        for first in range(0, 6000, 1000):
            request = ExportMetricsServiceRequest()
            scope = request.resource_metrics.add().scope_metrics.add()
            points = scope.metrics.add(name="g").gauge.data_points
            for number in range(first, first + 1000):
                otlp.add_attributes(
                    points.add(as_int=number, time_unix_nano=1).attributes, {"n": number}
                )
            self.assertEqual(
                client.post(self.http, "metrics", request.SerializeToString()).status, 200
            )
            lines = self.get().body.decode().splitlines()[2:]
            values = sorted(int(line.rsplit(" ", 1)[1]) for line in lines)
            self.assertEqual(values, list(range(first + 1000)))

    def test_lanes_share_the_series(self):
        config = metrics_config(self.http, self.scrape)
        self.daemon(config.replace("service:\n", "service:\n  lanes: 3\n"))
        for number in range(6):
            client.post(self.http, "metrics", prometheus.shop_metrics(number))
            self.assertIn(b"} %d\n" % number, self.get().body)
        self.assertEqual(self.get().body.count(b"# TYPE http_requests_total"), 1)

    def test_a_request_that_prometheus_cannot_get_is_told(self):
        request = ExportMetricsServiceRequest()
        scope = request.resource_metrics.add().scope_metrics.add()
        falling = scope.metrics.add(name="falling").sum
        falling.aggregation_temporality = 1
        falling.data_points.add(as_int=1, time_unix_nano=1)
        scope.metrics.add(name="fine").gauge.data_points.add(as_int=1, time_unix_nano=1)
        daemon = self.daemon(metrics_config(self.http, self.scrape))
        response = client.post(self.http, "metrics", request.SerializeToString())
        self.assertEqual(response.status, 200)
        daemon.wait_for_line("falling.*delta of a sum that is not monotonic")
        self.assertIn(b"\nfine{", self.get().body)
        self.assertNotIn(b"falling", self.get().body)


class Keys(case.Case):
    def test_an_endpoint_is_needed(self):
        config = metrics_config(free_port(), 1).replace("endpoint: 127.0.0.1:1\n", "namespace: x\n")
        server = self.server(config)
        server.wait()
        self.assertIn("exporters::prometheus::endpoint", server.log().replace(".", "::"))

    def test_a_port_in_use_is_an_error(self):
        port = free_port()
        self.daemon(metrics_config(free_port(), port))
        second = self.server(metrics_config(free_port(), port))
        self.assertNotEqual(second.wait(), 0)
        self.assertIn("address already in use", second.log())


if __name__ == "__main__":
    case.main()
