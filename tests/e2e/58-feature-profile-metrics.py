# SPDX-License-Identifier: Apache-2.0
"""profile_metrics behind the join: CPU time per span name and route, as the prometheus exporter
shows it beside the calls that span_metrics would count."""

import time
import unittest

from support import case, client, process, profiles
from support.joined import MS, SECOND, ids, trace
from support.metrics import Metrics
from support.ports import free_port

WITHIN_S = 30


class ProfileMetrics(case.Case):
    def setUp(self):
        self.ports = {name: free_port() for name in ("http", "scrape", "own")}

    def config(self):
        return (
            "receivers:\n  otlp:\n    protocols:\n"
            f"      http:\n        endpoint: 127.0.0.1:{self.ports['http']}\n"
            "processors:\n  trace_profile_join:\n    attributes: [span_name, http.route]\n"
            "connectors:\n  profile_metrics:\n    metrics_flush_interval: 100ms\n"
            f"exporters:\n  nop:\n  prometheus:\n    endpoint: 127.0.0.1:{self.ports['scrape']}\n"
            f"service:\n  lanes: 2\n{case.metrics_service(self.ports['own'])}  pipelines:\n"
            "    traces:\n      receivers: [otlp]\n      processors: [trace_profile_join]\n"
            "      exporters: [nop]\n"
            "    profiles:\n      receivers: [otlp]\n      processors: [trace_profile_join]\n"
            "      exporters: [profile_metrics]\n"
            "    metrics:\n      receivers: [profile_metrics]\n      exporters: [prometheus]\n"
        )

    def shown(self, name, **labels):
        page = Metrics(self.ports["scrape"])
        return page.sum(name, **labels) if page.has(name, **labels) else None

    def wait_for(self, value, name, **labels):
        process.poll_until(
            lambda: self.shown(name, **labels) == value, WITHIN_S, f"{name} {labels} is {value}"
        )

    def send(self, path, body):
        headers = {"Content-Type": "application/x-protobuf"}
        response = client.request(self.ports["http"], "POST", path, body, headers)
        self.assertEqual(response.status, 200, response.body)

    def test_cpu_time_of_a_span_and_a_route(self):
        self.daemon(self.config())
        now = time.time_ns()
        rows = [
            (*ids(1), "checkout", now - 2 * SECOND, now - SECOND),
            (*ids(2), "list", now - 2 * SECOND, now - SECOND),
        ]
        self.send("/v1/traces", trace(rows, "shop"))
        for _ in range(2):
            builder = profiles.Builder({"service.name": "shop"}).profile("cpu:nanoseconds")
            for number, value in ((1, 750 * MS), (1, 250 * MS), (2, 125 * MS)):
                trace_id, span_id = ids(number)
                labels = {"trace_id": trace_id.hex(), "span_id": span_id.hex()}
                builder.sample(["work", "main"], value, **labels)
            builder.sample(["idle"], 62 * MS)
            self.send(profiles.PATH, builder.bytes())
            builder = profiles.Builder({"service.name": "shop"}).profile("alloc_space:bytes")
            builder.sample(["work"], 4096)
            self.send(profiles.PATH, builder.bytes())
        cpu = "profile_cpu_time_seconds_total"
        self.wait_for(2.0, cpu, span_name="checkout", job="shop")
        self.wait_for(0.25, cpu, span_name="list", job="shop")
        self.wait_for(8192, "profile_memory_allocated_bytes_total", job="shop")
        own = Metrics(self.ports["own"])
        self.assertEqual(own.sum("spanflame_profile_metrics_samples"), 10)


if __name__ == "__main__":
    unittest.main()
