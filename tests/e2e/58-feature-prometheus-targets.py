# SPDX-License-Identifier: Apache-2.0
"""The prometheus receiver in front of targets: a server of our own, a real Prometheus, and the daemon itself."""

import gzip
import http.server
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from support import case, process
from support.ports import free_port

SCRAPED_WITHIN_S = 60
TEXT = "text/plain; version=0.0.4"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def targets_config(back_end, jobs):
    return (
        "receivers:\n  prometheus:\n    config:\n      global: {scrape_interval: 1s}\n"
        f"      scrape_configs:\n{jobs}"
        f"exporters:\n  otlp_http:\n    endpoint: {back_end.url}\n    compression: none\n"
        f"service:\n{case.QUIET}"
        "  pipelines:\n    metrics: {receivers: [prometheus], exporters: [otlp_http]}\n"
    )


def job(name, port, more=""):
    return f"        - job_name: {name}\n          static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n{more}"


class Target:
    """Serves what `body` is at the moment; None: 503."""

    def __init__(self, test, body, content_type=TEXT):
        self.body, self.content_type, self.heads = body, content_type, []
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                headers = {name.lower(): value for name, value in self.headers.items()}
                target.heads.append((self.path, headers))
                body = (target.body or "").encode()
                self.send_response(200 if target.body is not None else 503)
                if "gzip" in self.headers.get("Accept-Encoding", ""):
                    body = gzip.compress(body)
                    self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Type", target.content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        thread.start()
        test.addCleanup(lambda: (self.server.shutdown(), thread.join(), self.server.server_close()))


def points_of(received):
    """(name, attributes, value; None: the series has ended) of each data point of a number."""
    for resource in ExportMetricsServiceRequest.FromString(received.payload).resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                data = metric.sum if metric.HasField("sum") else metric.gauge
                for point in data.data_points:
                    labels = {pair.key: pair.value.string_value for pair in point.attributes}
                    yield metric.name, labels, None if point.flags else point.as_double


class Targets(case.Case):
    def start(self, jobs):
        back_end = self.sink()
        self.daemon(targets_config(back_end, jobs))
        return back_end

    def wait_for(self, back_end, *point):
        process.poll_until(
            lambda: any(point == found for request in back_end.requests for found in points_of(request)),
            SCRAPED_WITHIN_S,
            f"{point} is at the back-end",
        )

    def test_samples_arrive_and_end(self):
        target = Target(self, '# TYPE a_total counter\na_total{x="1"} 5\nb 2\n')
        back_end = self.start(
            job("shop", target.port, "          params: {module: [a b]}\n          bearer_token: secret\n")
        )
        self.wait_for(back_end, "a_total", {"x": "1"}, 5.0)
        self.wait_for(back_end, "up", {}, 1.0)
        path, headers = target.heads[0]
        self.assertEqual(path, "/metrics?module=a+b")
        self.assertEqual(headers["authorization"], "Bearer secret")
        self.assertEqual(headers["x-prometheus-scrape-timeout-seconds"], "1")
        self.assertIn("application/openmetrics-text", headers["accept"])
        target.body = "b 3\n"
        self.wait_for(back_end, "a_total", {"x": "1"}, None)
        self.wait_for(back_end, "b", {}, 3.0)
        target.body = None
        self.wait_for(back_end, "up", {}, 0.0)
        self.wait_for(back_end, "b", {}, None)
        target.body = "b 4\n"
        self.wait_for(back_end, "b", {}, 4.0)

    def test_openmetrics_has_exemplars(self):
        target = Target(
            self,
            '# TYPE a counter\na_total 1 # {trace_id="0af7651916cd43dd8448eb211c80319c"} 1\n# EOF\n',
            OPEN_METRICS,
        )
        back_end = self.start(job("shop", target.port))
        self.wait_for(back_end, "a_total", {}, 1.0)
        trace_ids = {
            exemplar.trace_id.hex()
            for received in back_end.requests
            for resource in ExportMetricsServiceRequest.FromString(received.payload).resource_metrics
            for metric in resource.scope_metrics[0].metrics
            for point in metric.sum.data_points
            for exemplar in point.exemplars
        }
        self.assertEqual(trace_ids, {"0af7651916cd43dd8448eb211c80319c"})

    def test_a_real_prometheus_is_a_target(self):
        program = shutil.which("prometheus")
        if program is None:
            raise unittest.SkipTest("prometheus is not installed (Debian's package prometheus)")
        port = free_port()
        directory = pathlib.Path(tempfile.mkdtemp(prefix="spanflame-e2e-targets-"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        (directory / "prometheus.yml").write_text("global: {scrape_interval: 1m}\n")
        server = subprocess.Popen(
            [
                program,
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(lambda: (server.terminate(), server.wait(30)))
        back_end = self.start(job("prometheus", port))
        self.wait_for(back_end, "up", {}, 1.0)
        names = {
            metric.name
            for received in back_end.requests
            for resource in ExportMetricsServiceRequest.FromString(received.payload).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }
        self.assertIn("prometheus_tsdb_compaction_duration_seconds", names)
        self.assertIn("go_gc_duration_seconds", names)

    def test_mistakes_are_named(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="spanflame-e2e-targets-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        for keys, words in (
            ("          kubernetes_sd_configs: [{role: pod}]\n", "kubernetes_sd_configs"),
            ("          scrape_timeout: 2s\n", "scrape_timeout"),
            ("          relabel_configs: [{action: nonsense}]\n", "relabel_configs"),
            ("          oauth2: {client_id: a}\n", "oauth2"),
        ):
            with self.subTest(words):
                path = self.directory / "config.yaml"
                path.write_text(
                    "receivers:\n  prometheus:\n    config:\n      global: {scrape_interval: 1s}\n"
                    f"      scrape_configs:\n{job('a', 1, keys)}"
                    "exporters: {nop: }\nservice: {pipelines: {metrics: {receivers: [prometheus], "
                    "exporters: [nop]}}}\n"
                )
                checked = process.run("validate", "--config", str(path))
                self.assertNotEqual(checked.returncode, 0)
                self.assertIn(words, checked.stdout + checked.stderr)


if __name__ == "__main__":
    case.main()
