# SPDX-License-Identifier: Apache-2.0
"""The prometheus exporter in front of a real Prometheus server, and promtool's opinion of it."""

import gzip
import json
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

from support import case, client, otlp, peers, process
from support.ports import free_port

SCRAPED_WITHIN_S = 60
RESOURCE = {
    "service.name": "shop",
    "service.namespace": "eu",
    "service.instance.id": "shop-1",
    "host.name": "h1",
}
TRACE_ID = bytes(range(16))


def metrics_config(http, scrape, exporter=""):
    return (
        "receivers:\n  otlp:\n    protocols:\n"
        f"      http:\n        endpoint: 127.0.0.1:{http}\n"
        f"exporters:\n  prometheus:\n    endpoint: 127.0.0.1:{scrape}\n{exporter}"
        f"service:\n{case.QUIET}"
        "  pipelines:\n    metrics:\n      receivers: [otlp]\n      exporters: [prometheus]\n"
    )


def shop_metrics(requests):
    """One metric of each type, as they are now."""
    now_ns = time.time_ns()
    start_ns = now_ns - 60 * 10**9
    times = {"start_time_unix_nano": start_ns, "time_unix_nano": now_ns}
    request = ExportMetricsServiceRequest()
    group = request.resource_metrics.add()
    otlp.add_attributes(group.resource.attributes, RESOURCE)
    scope = group.scope_metrics.add()
    scope.scope.name = "shop"
    counter = scope.metrics.add(name="http.requests", unit="{request}", description="Requests.").sum
    counter.is_monotonic = True
    counter.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
    point = counter.data_points.add(as_int=requests, **times)
    otlp.add_attributes(point.attributes, {"http.route": '/cart "x"\n', "status": 200})
    point.exemplars.add(trace_id=TRACE_ID, as_int=1, time_unix_nano=now_ns)
    scope.metrics.add(name="queue.fill", unit="1").gauge.data_points.add(as_double=0.25, **times)
    histogram = scope.metrics.add(name="http.duration", unit="s").histogram
    histogram.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
    histogram.data_points.add(
        count=6, sum=1.5, bucket_counts=[1, 2, 3], explicit_bounds=[0.1, 0.5], **times
    )
    native = scope.metrics.add(name="http.size", unit="By").exponential_histogram
    native.aggregation_temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
    point = native.data_points.add(count=7, sum=70, scale=2, zero_count=1, **times)
    point.positive.offset = 3
    point.positive.bucket_counts.extend([2, 0, 0, 0, 4])
    summary = scope.metrics.add(name="gc.pause", unit="ms").summary.data_points.add(
        count=2, sum=3, **times
    )
    summary.quantile_values.add(quantile=0.5, value=1.5)
    return request.SerializeToString()


def need(program):
    path = shutil.which(program)
    if path is None:
        raise unittest.SkipTest(f"{program} is not installed (Debian's package prometheus)")
    return path


class Prometheus:
    """A real server that scrapes one target each second."""

    def __init__(self, test, target):
        self.port = free_port()
        directory = pathlib.Path(tempfile.mkdtemp(prefix="spanflame-e2e-prometheus-"))
        test.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        config = directory / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n- job_name: test\n  honor_labels: true\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{target}']}}]\n"
        )
        self.log = open(directory / "log", "w+")
        test.addCleanup(self.log.close)
        self.process = subprocess.Popen(
            [
                need("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--enable-feature=exemplar-storage,native-histograms",
            ],
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        test.addCleanup(self._stop)

    def _stop(self):
        self.process.terminate()
        self.process.wait(30)

    def ask(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return json.load(response)["data"]
        except OSError:
            return None

    def value(self, query):
        """Of the one series that the query finds; None: not one."""
        data = self.ask("query", query=query)
        found = data["result"] if data else []
        return float(found[0]["value"][1]) if len(found) == 1 else None

    def wait_for(self, query, value):
        process.poll_until(
            lambda: self.value(query) == value,
            SCRAPED_WITHIN_S,
            f"{query} is {value} at the Prometheus server",
        )


class RealServer(case.Case):
    def setUp(self):
        self.http, self.scrape = free_port(), free_port()

    def send(self, requests):
        body = shop_metrics(requests)
        self.assertEqual(client.post(self.http, "metrics", body).status, 200)

    def test_it_has_what_was_sent(self):
        need("prometheus")
        options = "    enable_open_metrics: true\n"
        self.daemon(metrics_config(self.http, self.scrape, options))
        self.send(41)
        server = Prometheus(self, self.scrape)
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

        def exemplars():
            now = time.time()
            found = server.ask(
                "query_exemplars", query="http_requests_total", start=now - 600, end=now + 60
            )
            return found and found[0]["exemplars"][0]["labels"].get("trace_id") == TRACE_ID.hex()

        # A server that asks for native histograms gets protobuf, in which exemplars travel too.
        process.poll_until(exemplars, SCRAPED_WITHIN_S, "the exemplar is at the Prometheus server")

    def test_the_sdk_of_python(self):
        need("prometheus")
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
        promtool = need("promtool")
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
        client.post(self.http, "metrics", shop_metrics(3))
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
        self.assertIn(b'# {trace_id="%s"} 1.0' % TRACE_ID.hex().encode(), openmetrics.body)
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
            client.post(self.http, "metrics", shop_metrics(number))
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
