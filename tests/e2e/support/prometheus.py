# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus server, and metrics of every type for it."""

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

from support import otlp, process

ARRIVES_WITHIN_S = 60
RESOURCE = {
    "service.name": "shop",
    "service.namespace": "eu",
    "service.instance.id": "shop-1",
    "host.name": "h1",
}
TRACE_ID = bytes(range(16))


def shop_metrics(requests, flags=0):
    """One metric of each type, as they are now."""
    now_ns = time.time_ns()
    times = {
        "start_time_unix_nano": now_ns - 60 * 10**9,
        "time_unix_nano": now_ns,
        "flags": flags,
    }
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


class Server:
    """Runs on that port with that configuration."""

    def __init__(self, test, port, text, *flags):
        self.port = port
        directory = pathlib.Path(tempfile.mkdtemp(prefix="spanflame-e2e-prometheus-"))
        test.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        config = directory / "prometheus.yml"
        config.write_text(text)
        self.log = open(directory / "log", "w+")
        test.addCleanup(self.log.close)
        self.process = subprocess.Popen(
            [
                need("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--enable-feature=exemplar-storage,native-histograms",
                *flags,
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
            ARRIVES_WITHIN_S,
            f"{query} is {value} at the Prometheus server",
        )

    def wait_for_exemplar(self, query, trace_id):
        def is_there():
            now = time.time()
            found = self.ask("query_exemplars", query=query, start=now - 600, end=now + 60)
            return found and found[0]["exemplars"][0]["labels"].get("trace_id") == trace_id.hex()

        process.poll_until(is_there, ARRIVES_WITHIN_S, "the exemplar is at the Prometheus server")
