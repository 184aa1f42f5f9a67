# SPDX-License-Identifier: Apache-2.0
"""The prometheus_remote_write exporter in front of a real Prometheus server."""

import os
import shutil
import tempfile
import time

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from support import case, client, otlp, peers, process, prometheus
from support.metrics import Metrics
from support.ports import free_port
from support.sink import Reply


WRITTEN = "otelcol_exporter_prometheusremotewrite_written"
WAL = "otelcol_exporter_prometheusremotewrite_wal"
VERSION_2 = "protobuf_message: io.prometheus.write.v2.Request"
GATE = ("--feature-gates", "exporter.prometheusremotewritexporter.enableSendingRW2")


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

    def check_kill(self, config):
        """What was sent before the server was there arrives after the daemon was killed."""
        killed = self.server(config)
        killed.wait_until_ready()
        self.send(41)
        killed.close()
        server = self.prometheus()
        self.daemon(config)
        server.wait_for('http_requests_total{job="eu/shop"}', 41)

    def directory(self):
        directory = tempfile.mkdtemp(prefix="spanflame-e2e-remote-write-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        return directory

    def test_batches_survive_a_kill_with_a_storage_extension(self):
        config = metrics_config(
            self.http, self.port, "    remote_write_queue: {storage: file_storage}\n"
        ).replace("service:\n", "service:\n  extensions: [file_storage]\n")
        self.check_kill(config + f"extensions:\n  file_storage: {{directory: {self.directory()}}}\n")

    def test_batches_survive_a_kill_with_a_wal(self):
        self.check_kill(
            metrics_config(self.http, self.port, f"    wal: {{directory: {self.directory()}}}\n")
        )

    def test_a_server_of_version_1_is_noticed(self):
        """Debian's server takes a request of version 2.0 for an empty one, with status 204."""
        self.prometheus()
        daemon = self.server(
            metrics_config(self.http, self.port, f"    {VERSION_2}\n"), arguments=GATE
        )
        daemon.wait_until_ready()
        self.send(41)
        daemon.wait_for_line("may not support remote write 2.0, and drop data")
        self.assertEqual(daemon.stop(), 0, daemon.log())

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


class Version2(case.Case):
    def test_requests_and_what_was_written(self):
        written = {
            f"X-Prometheus-Remote-Write-{kind}-Written": str(number)
            for kind, number in (("Samples", 11), ("Histograms", 1), ("Exemplars", 1))
        }
        port, http, metrics = free_port(), free_port(), free_port()
        back_end = self.sink(port, otherwise=Reply(204, written))
        config = metrics_config(http, port, f"    {VERSION_2}\n")
        self.daemon(config.replace(case.QUIET, case.metrics_service(metrics)), arguments=GATE)
        body = prometheus.shop_metrics(41)
        self.assertEqual(client.post(http, "metrics", body).status, 200)
        (received,) = back_end.wait_for_requests(1)
        self.assertEqual(
            received.headers["content-type"],
            "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        )
        self.assertEqual(received.headers["x-prometheus-remote-write-version"], "2.0.0")
        # The table begins with the empty symbol and the name of the first label.
        self.assertTrue(received.payload.startswith(b"\x22\0\x22\x08__name__"))
        self.assertEqual(received.payload.count(b"eu/shop"), 1)
        for text in (b"http_requests_total", b"Requests.", prometheus.TRACE_ID.hex().encode()):
            self.assertEqual(received.payload.count(text), 1, text)
        process.poll_until(
            lambda: [
                Metrics(metrics).sum(f"{WRITTEN}_{kind}")
                for kind in ("samples", "histograms", "exemplars")
            ]
            == [11, 1, 1],
            prometheus.ARRIVES_WITHIN_S,
            "what was written is counted",
        )

    def test_it_needs_the_feature_gate(self):
        server = self.server(metrics_config(free_port(), free_port(), f"    {VERSION_2}\n"))
        self.assertEqual(server.wait(), 1)
        self.assertIn("start with --feature-gates exporter.prometheusremotewrit", server.log())


class Wal(case.Case):
    def test_what_is_in_it_is_counted(self):
        directory = tempfile.mkdtemp(prefix="spanflame-e2e-remote-write-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        # A log of the Go collector's is not touched.
        os.mkdir(f"{directory}/prom_remotewrite")
        segment = f"{directory}/prom_remotewrite/{1:020}"
        with open(segment, "wb") as file:
            file.write(b"left")
        http, metrics = free_port(), free_port()
        config = metrics_config(http, free_port(), f"    wal: {{directory: {directory}}}\n")
        server = self.daemon(config.replace(case.QUIET, case.metrics_service(metrics)))
        self.assertIn("queues of the Go collector", server.log())
        body = prometheus.shop_metrics(41)
        for _ in range(3):
            self.assertEqual(client.post(http, "metrics", body).status, 200)
        found = Metrics(metrics)
        labels = {"exporter": "prometheus_remote_write", "pipeline": "metrics"}
        self.assertEqual(found.sum(f"{WAL}_lag", **labels), 3)
        self.assertEqual(found.sum(f"{WAL}_writes", **labels), 3)
        self.assertEqual(found.sum(f"{WAL}_writes_failures", **labels), 0)
        self.assertGreater(found.sum(f"{WAL}_bytes_written", **labels), 3 * len(body) // 2)
        with open(segment, "rb") as file:
            self.assertEqual(file.read(), b"left")


if __name__ == "__main__":
    case.main()
