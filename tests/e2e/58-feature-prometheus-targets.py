# SPDX-License-Identifier: Apache-2.0
"""The prometheus receiver in front of targets: a server of our own, a real Prometheus, and the daemon itself."""

import gzip
import http.server
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import threading
import unittest
import urllib.request

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from support import case, certificates, process
from support.metrics import Metrics
from support.ports import free_port

SCRAPED_WITHIN_S = 60
TEXT = "text/plain; version=0.0.4"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def targets_config(back_end, jobs, telemetry=case.QUIET):
    return (
        "receivers:\n  prometheus:\n    config:\n      global: {scrape_interval: 1s}\n"
        f"      scrape_configs:\n{jobs}"
        f"exporters:\n  otlp_http:\n    endpoint: {back_end.url}\n    compression: none\n"
        f"service:\n{telemetry}"
        "  pipelines:\n    metrics: {receivers: [prometheus], exporters: [otlp_http]}\n"
    )


def job(name, port, more=""):
    return f"        - job_name: {name}\n          static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n{more}"


def telemetry_at(port):
    return (
        "  lanes: 2\n  telemetry:\n    metrics:\n      readers:\n        - pull:\n            exporter:\n"
        f"              prometheus: {{host: 127.0.0.1, port: {port}}}\n"
    )


class Target:
    """Serves what `body` is at the moment; None: 503."""

    def __init__(self, test, body, content_type=TEXT, tls=None):
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
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
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

    def folder(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="spanflame-e2e-targets-"))
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        return directory

    def resources(self, back_end):
        """Of each point of `up`: the addresses (service.instance.id) and values."""
        for received in back_end.requests:
            for resource in ExportMetricsServiceRequest.FromString(received.payload).resource_metrics:
                about = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
                for metric in resource.scope_metrics[0].metrics:
                    for point in metric.gauge.data_points:
                        if metric.name == "up":
                            labels = {pair.key: pair.value.string_value for pair in point.attributes}
                            yield about["service.instance.id"], labels, None if point.flags else point.as_double

    def wait_for_up(self, back_end, port, value, **labels):
        process.poll_until(
            lambda: (f"127.0.0.1:{port}", labels, value) in self.resources(back_end),
            SCRAPED_WITHIN_S,
            f"up of {port} with {labels} is {value}",
        )

    def test_targets_in_files_come_and_go(self):
        directory, port = self.folder(), free_port()
        one, two = Target(self, "a 1\n"), Target(self, "b 1\n")
        path = directory / "shops.json"

        def write(text):
            # As a careful writer does: a rename, so that nobody sees half a file.
            (directory / "new").write_text(text)
            os.replace(directory / "new", path)

        def group(target, zone):
            return {"targets": [f"127.0.0.1:{target.port}"], "labels": {"zone": zone, "__meta_team": "x"}}

        write(json.dumps([group(one, "eu")]))
        back_end = self.sink()
        self.daemon(
            targets_config(
                back_end,
                "        - job_name: shops\n"
                f"          file_sd_configs: [{{files: ['{directory}/*.json', '{directory}/*.yml'], "
                "refresh_interval: 1m}]\n"
                "          relabel_configs:\n"
                "            - {source_labels: [__meta_filepath], regex: '.*/(.*)', target_label: file}\n"
                "            - {regex: __meta_(team), action: labelmap}\n",
                telemetry_at(port),
            )
        )
        self.wait_for_up(back_end, one.port, 1.0, zone="eu", file="shops.json", team="x")
        write(json.dumps([group(one, "eu"), group(two, "us")]))
        self.wait_for_up(back_end, two.port, 1.0, zone="us", file="shops.json", team="x")
        # Nothing of a bad file counts, and what was there stays.
        write('[{"targets": ["127.0.0.1:1"], "label": {}}]')
        process.poll_until(
            lambda: Metrics(port).sum("prometheus_sd_file_read_errors") >= 1,
            SCRAPED_WITHIN_S,
            "the bad file is counted",
        )
        self.assertEqual(Metrics(port).sum("spanflame_prometheus_targets"), 2)
        (directory / "more.yml").write_text(f"- targets: ['127.0.0.1:{one.port}']\n  labels: {{zone: yaml}}\n")
        self.wait_for_up(back_end, one.port, 1.0, zone="yaml", file="more.yml")
        # The first target goes; its series end once, up too. The second one is scraped all the while.
        write(json.dumps([group(two, "us")]))
        self.wait_for_up(back_end, one.port, None, zone="eu", file="shops.json", team="x")
        self.wait_for(back_end, "a", {"zone": "eu", "file": "shops.json", "team": "x"}, None)
        os.remove(path)
        self.wait_for_up(back_end, two.port, None, zone="us", file="shops.json", team="x")
        process.poll_until(
            lambda: Metrics(port).sum("spanflame_prometheus_targets") == 1,
            SCRAPED_WITHIN_S,
            "one target is left",
        )
        ended = [
            point
            for request in back_end.requests
            for point in points_of(request)
            if point[0] == "a" and point[1].get("zone") == "eu" and point[2] is None
        ]
        self.assertEqual(len(ended), 1)

    def test_servers_list_targets(self):
        port = free_port()
        one, two = Target(self, "a 1\n"), Target(self, "b 1\n")

        def listing(*targets):
            return json.dumps([{"targets": [f"127.0.0.1:{target.port}"]} for target in targets])

        lists = Target(self, listing(one), "application/json; charset=utf-8")
        back_end = self.sink()
        self.daemon(
            targets_config(
                back_end,
                "        - job_name: shops\n"
                f"          http_sd_configs: [{{url: 'http://127.0.0.1:{lists.port}/list', "
                "refresh_interval: 1s, authorization: {credentials: secret}}]\n"
                "          relabel_configs:\n"
                "            - {source_labels: [__meta_url], regex: '.*/(.*)', target_label: from}\n",
                telemetry_at(port),
            )
        )
        self.wait_for_up(back_end, one.port, 1.0, **{"from": "list"})
        path, headers = lists.heads[0]
        self.assertEqual(path, "/list")
        self.assertEqual(headers["x-prometheus-refresh-interval-seconds"], "1")
        self.assertEqual(headers["accept"], "application/json")
        self.assertEqual(headers["authorization"], "Bearer secret")
        for body, content_type in ((None, "application/json"), (listing(two), TEXT), ("[{]", "application/json")):
            failures = Metrics(port).sum("prometheus_sd_http_failures")
            lists.content_type, lists.body = content_type, body
            process.poll_until(
                lambda: Metrics(port).sum("prometheus_sd_http_failures") > failures,
                SCRAPED_WITHIN_S,
                "the failure is counted",
            )
            self.assertEqual(Metrics(port).sum("spanflame_prometheus_targets"), 1)
        lists.content_type, lists.body = "application/json", listing(two)
        self.wait_for_up(back_end, two.port, 1.0, **{"from": "list"})
        self.wait_for_up(back_end, one.port, None, **{"from": "list"})

    def test_jobs_in_files(self):
        directory, target = self.folder(), Target(self, "a 1\n")
        (directory / "targets.json").write_text(json.dumps([{"targets": [f"127.0.0.1:{target.port}"]}]))
        (directory / "token").write_text("secret")
        (directory / "jobs.yml").write_text(
            "scrape_configs:\n  - job_name: other\n    file_sd_configs: [{files: [targets.json]}]\n"
            f"    authorization: {{credentials_file: token}}\n    http_headers: {{X-Own: {{files: [{directory}/token]}}}}\n"
            "    relabel_configs: [{source_labels: [job], regex: (.)(.*), target_label: first, replacement: $1}]\n"
        )
        back_end = self.sink()
        config = targets_config(back_end, job("shop", target.port)).replace(
            "      scrape_configs:", f"      scrape_config_files: ['{directory}/*.yml']\n      scrape_configs:"
        )
        self.daemon(config)
        self.wait_for_up(back_end, target.port, 1.0)
        self.wait_for_up(back_end, target.port, 1.0, first="o")
        self.assertIn("Bearer secret", {headers.get("authorization") for _, headers in target.heads})
        self.assertIn("secret", {headers.get("x-own") for _, headers in target.heads})
        (directory / "more.yml").write_text("scrape_configs:\n  - job_name: shop\n")
        path = directory / "config.yaml"
        for text, words in (
            ("scrape_configs:\n  - job_name: shop\n", 'two jobs "shop"'),
            ("scrape_configs:\n  - job_name: a\n    scrape_intervall: 1s\n", "more.yml:3:5: scrape_configs::0::"),
            ("scrape_configs: [{job_name: a, scrape_timeout: 2s}]\n", "timeout is longer"),
        ):
            with self.subTest(words):
                (directory / "more.yml").write_text(text)
                path.write_text(config)
                checked = process.run("validate", "--config", str(path))
                self.assertNotEqual(checked.returncode, 0)
                self.assertIn(words, checked.stdout + checked.stderr)

    def test_a_real_prometheus_finds_the_same_targets(self):
        program = shutil.which("prometheus")
        if program is None:
            raise unittest.SkipTest("prometheus is not installed (Debian's package prometheus)")
        directory, target = self.folder(), Target(self, "a 1\n")
        address = f"127.0.0.1:{target.port}"
        (directory / "a.yaml").write_text(
            f"# a comment\n- targets: [{address}]\n  labels: {{zone: 1, on: true, none: null, __param_x: a b}}\n"
            f"- labels: {{zone: second, __metrics_path__: /other, job: own}}\n  targets: ['{address}', '{address}']\n"
            f"- {{targets: [{address}], labels: {{zone: slow, __scrape_interval__: 2s, __scrape_timeout__: 1s}}}}\n"
            f"- {{targets: [{address}], labels: {{zone: dropped}}}}\n- {{targets: null}}\n- {{}}\n"
        )
        (directory / "b.json").write_text(
            json.dumps(
                [
                    {"targets": [address], "labels": {"zone": "\u00e9 \U0001f600", "empty": ""}},
                    {"targets": [], "labels": {"zone": "nobody"}},
                ]
            )
        )
        (directory / "c.json").write_text('[{"targets": "none"}]')
        keys = (
            f"          file_sd_configs: [{{files: ['{directory}/*.yaml', '{directory}/*.json']}}]\n"
            "          relabel_configs:\n            - {source_labels: [zone], regex: dropped, action: drop}\n"
            "            - {source_labels: [__meta_filepath], regex: '.*/(.*)', target_label: file, replacement: DOLLAR1}\n"
        )
        back_end = self.sink()
        self.daemon(targets_config(back_end, "        - job_name: all\n" + keys.replace("DOLLAR", "$$")))
        (directory / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\nscrape_configs:\n        - job_name: all\n" + keys.replace("DOLLAR", "$")
        )
        port = free_port()
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

        def theirs():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/targets", timeout=10) as response:
                    found = json.load(response)["data"]["activeTargets"]
            except OSError:
                return set()
            return {
                (frozenset((k, v) for k, v in one["labels"].items() if k not in ("job", "instance")), one["scrapeUrl"])
                for one in found
            }

        def ours():
            labels = {frozenset(labels.items()) for _, labels, _ in self.resources(back_end)}
            return labels, {path for path, _ in target.heads}

        process.poll_until(lambda: len(theirs()) == 4, SCRAPED_WITHIN_S, "Prometheus has its targets")
        expected = theirs()
        process.poll_until(
            lambda: ours()[0] == {labels for labels, _ in expected},
            SCRAPED_WITHIN_S,
            f"the targets are {expected}",
        )
        self.assertEqual(
            {url.removeprefix(f"http://{address}") for _, url in expected},
            {path for path in ours()[1]},
        )

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

    def start_simple(self, keys):
        back_end = self.sink()
        self.daemon(
            f"receivers:\n  prometheus_simple: {{collection_interval: 1s, {keys}}}\n"
            f"exporters:\n  otlp_http:\n    endpoint: {back_end.url}\n    compression: none\n"
            f"service:\n{case.QUIET}"
            "  pipelines:\n    metrics: {receivers: [prometheus_simple], exporters: [otlp_http]}\n"
        )
        return back_end

    def job_of(self, back_end):
        """service.name of what was received first."""
        process.poll_until(lambda: back_end.requests, SCRAPED_WITHIN_S, "a request is at the back-end")
        request = ExportMetricsServiceRequest.FromString(back_end.requests[0].payload)
        attributes = request.resource_metrics[0].resource.attributes
        return next(pair.value.string_value for pair in attributes if pair.key == "service.name")

    def test_simple(self):
        target = Target(self, "a 1\n")
        back_end = self.start_simple(
            f"endpoint: '127.0.0.1:{target.port}', metrics_path: /here, params: {{module: [a, b]}}, labels: {{zone: eu}}"
        )
        self.wait_for(back_end, "a", {"zone": "eu"}, 1.0)
        self.wait_for_up(back_end, target.port, 1.0, zone="eu")
        path, headers = target.heads[0]
        self.assertEqual(path, "/here?module=a&module=b")
        self.assertEqual(headers["x-prometheus-scrape-timeout-seconds"], "1")
        self.assertEqual(headers["accept-encoding"], "identity")
        self.assertEqual(self.job_of(back_end), f"prometheus_simple/127.0.0.1:{target.port}")

    def test_simple_over_tls(self):
        files = certificates.Certificates(self)
        for keys in (
            f"tls: {{ca_file: {files.path('ca.pem')}, server_name_override: localhost}}",
            "tls: {insecure: false, insecure_skip_verify: true}",
            "tls_enabled: true, tls_config: {insecure_skip_verify: true}",
        ):
            with self.subTest(keys):
                target = Target(self, "a 1\n", tls=(files.path("server.pem"), files.path("server.key")))
                back_end = self.start_simple(f"endpoint: '127.0.0.1:{target.port}', job_name: own, {keys}")
                self.wait_for(back_end, "a", {}, 1.0)
                self.assertEqual(self.job_of(back_end), "own")

    def test_mistakes_are_named(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="spanflame-e2e-targets-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        for keys, words in (
            ("          kubernetes_sd_configs: [{role: pod}]\n", "kubernetes_sd_configs"),
            ("          scrape_timeout: 2s\n", "scrape_timeout"),
            ("          relabel_configs: [{action: nonsense}]\n", "relabel_configs"),
            ("          oauth2: {client_id: a}\n", "oauth2"),
            ("          file_sd_configs: [{files: [a.txt]}]\n", "file_sd_configs"),
            ("          file_sd_configs: [{files: []}]\n", "files"),
            ("          http_sd_configs: [{refresh_interval: 1s}]\n", "url"),
            ("          http_sd_configs: [{url: 'ftp://a/b'}]\n", "url"),
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
