# SPDX-License-Identifier: Apache-2.0
"""The prometheus_remote_write exporter in front of a real Prometheus server."""

import shutil
import tempfile
import time

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from support import case, client, otlp, peers, process, prometheus
from support.ports import free_port


def metrics_config(http, port, exporter="", name="prometheus_remote_write"):
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      http:\n        endpoint: 127.0.0.1:{http}\n"
        f"exporters:\n  {name}:\n    endpoint: http://127.0.0.1:{port}/api/v1/write\n{exporter}"
        f"service:\n{case.QUIET}"
        f"  pipelines:\n    metrics:\n      receivers: [otlp]\n      exporters: [{name}]\n"
    )


class RealServer(case.Case):
    def setUp(self):
        prometheus.need("prometheus")
        self.http, self.port = free_port(), free_port()

    def prometheus(self):
        return prometheus.Server(
            self,
            self.port,
            "global: {scrape_interval: 1h}\n",
            "--web.enable-remote-write-receiver",
        )

    def send(self, requests, flags=0):
        body = prometheus.shop_metrics(requests, flags)
        self.assertEqual(client.post(self.http, "metrics", body).status, 200)

    def test_it_has_what_was_sent(self):
        self.daemon(
            metrics_config(
                self.http, self.port, "    external_labels: {zone: a}\n    send_metadata: true\n"
            )
        )
        # Nobody listens yet: it is tried again.
        self.send(41)
        server = self.prometheus()
        labels = 'job="eu/shop",instance="shop-1",zone="a"'
        server.wait_for(f'http_requests_total{{http_route="/cart \\"x\\"\\n",{labels}}}', 41)
        self.send(42)
        server.wait_for(f'http_requests_total{{status="200",{labels}}}', 42)
        for query, value in (
            (f'queue_fill_ratio{{otel_scope_name="shop",{labels}}}', 0.25),
            (f'http_duration_seconds_bucket{{le="0.5",{labels}}}', 3),
            (f'http_duration_seconds_bucket{{le="+Inf",{labels}}}', 6),
            ("http_duration_seconds_sum", 1.5),
            ('gc_pause_milliseconds{quantile="0.5"}', 1.5),
            ("histogram_count(http_size_bytes)", 7),
            ("histogram_sum(http_size_bytes)", 70),
            ('target_info{host_name="h1"}', 1),
            ("queue_fill_ratio * on (job, instance) group_left(host_name) target_info", 0.25),
        ):
            server.wait_for(query, value)

        server.wait_for_exemplar("http_requests_total", prometheus.TRACE_ID)
        # Stale markers end the series.
        self.send(0, flags=1)
        server.wait_for("count(http_requests_total) or vector(0)", 0)
        server.wait_for("count(http_duration_seconds_sum) or vector(0)", 0)

    def test_many_requests_of_a_batch(self):
        self.daemon(metrics_config(self.http, self.port, "    max_batch_size_bytes: 2000\n"))
        server = self.prometheus()
        request = ExportMetricsServiceRequest()
        scope = request.resource_metrics.add().scope_metrics.add()
        points = scope.metrics.add(name="g").gauge.data_points
        now_ns = time.time_ns()
        for number in range(2000):
            otlp.add_attributes(
                points.add(as_int=number, time_unix_nano=now_ns).attributes, {"n": number}
            )
        self.assertEqual(client.post(self.http, "metrics", request.SerializeToString()).status, 200)
        server.wait_for("count(g)", 2000)
        server.wait_for("sum(g)", 1999000)

    def test_batches_survive_a_kill(self):
        """With a storage extension, in the place of the Go collector's wal."""
        directory = tempfile.mkdtemp(prefix="spanflame-e2e-remote-write-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        config = metrics_config(
            self.http, self.port, "    remote_write_queue: {storage: file_storage}\n"
        ).replace("service:\n", "service:\n  extensions: [file_storage]\n")
        config += f"extensions:\n  file_storage: {{directory: {directory}}}\n"
        killed = self.server(config)
        killed.wait_until_ready()
        self.send(41)
        killed.close()
        server = self.prometheus()
        self.daemon(config)
        server.wait_for('http_requests_total{job="eu/shop"}', 41)

    def test_the_sdk_of_python(self):
        peers.need("python")
        self.daemon(metrics_config(self.http, self.port, name="prometheusremotewrite"))
        server = self.prometheus()
        peers.emit(
            "python",
            protocol="http",
            endpoint=f"127.0.0.1:{self.http}",
            compression="gzip",
            service="e2e",
            spans=0,
            points=4,
            logs=0,
        )
        process.poll_until(
            lambda: (server.value('count({job="e2e"})') or 0) > 0,
            prometheus.ARRIVES_WITHIN_S,
            "the metrics are at the Prometheus server",
        )


if __name__ == "__main__":
    case.main()
