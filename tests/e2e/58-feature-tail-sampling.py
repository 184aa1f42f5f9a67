# SPDX-License-Identifier: Apache-2.0
"""tail_sampling, with the same configuration and the same requests in the Go collector and in the daemon: the same spans
go on, and the same decisions are counted. And a kill with traces that wait."""

import random
import tempfile
import time

from support import case, client, otlp, peers
from support.metrics import Metrics
from support.ports import free_port

CONFIG = """\
receivers:
  otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{http}'}}}}}}
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
    - {{name: noise, type: drop, drop: {{drop_sub_policy: [{{name: n, type: string_attribute, string_attribute: {{key: path, values: [/health]}}}}]}}}}
    - {{name: errors, type: status_code, status_code: {{status_codes: [ERROR]}}}}
    - {{name: slow, type: latency, latency: {{threshold_ms: 500}}}}
    - {{name: codes, type: numeric_attribute, numeric_attribute: {{key: code, min_value: 500, max_value: 599}}}}
    - {{name: flagged, type: boolean_attribute, boolean_attribute: {{key: flag, value: true}}}}
    - {{name: state, type: trace_state, trace_state: {{key: vendor, values: [x]}}}}
    - {{name: both, type: and, and: {{and_sub_policy: [{{name: some, type: probabilistic, probabilistic: {{sampling_percentage: 50}}}}, {{name: few, type: span_count, span_count: {{min_spans: 2, max_spans: 3}}}}]}}}}
exporters:
  otlp_http: {{endpoint: {back_end}, compression: none{exporter}}}
{extensions}service:
{extension_list}  telemetry: {{metrics: {{level: detailed, readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {metrics}}}}}}}}}]}}}}
  pipelines:
    traces: {{receivers: [otlp], processors: [tail_sampling], exporters: [otlp_http]}}
"""
WITHIN_S = 20
METRIC = "otelcol_processor_tail_sampling_"
COUNTED = ("count_traces_sampled", "global_count_traces_sampled", "new_trace_id_received")


def requests(seed, traces=40):
    """Spans of many traces, in random requests."""
    dice = random.Random(seed)
    spans = []
    for number in range(1, traces + 1):
        for index in range(dice.choice([1, 1, 2, 3, 5])):
            spans.append((number, index))
    dice.shuffle(spans)
    while spans:
        some, spans = spans[:7], spans[7:]
        request = otlp.traces(len(some))
        for span, (number, index) in zip(request.resource_spans[0].scope_spans[0].spans, some):
            span.trace_id = (number * 0x9E3779B97F4A7C15 % (1 << 128)).to_bytes(16, "big")
            span.span_id = (number * 100 + index).to_bytes(8, "big")
            start = 1_700_000_000_000_000_000
            span.start_time_unix_nano = start
            span.end_time_unix_nano = start + dice.choice([1, 100, 700]) * 1_000_000 // dice.choice([1, 1, 9])
            if dice.random() < 0.1:
                span.status.code = 2
            if dice.random() < 0.1:
                span.trace_state = dice.choice(["vendor=x", "vendor=y", "vendor=x,vendor=x"])
            more = {}
            if dice.random() < 0.1:
                more["path"] = dice.choice(["/health", "/shop"])
            if dice.random() < 0.2:
                more["code"] = dice.choice([200, 500, 600])
            if dice.random() < 0.1:
                more["flag"] = dice.choice([True, False])
            otlp.add_attributes(span.attributes, more)
        yield request.SerializeToString()


def ids(sink):
    """Every span that arrived, in order of the ids."""
    return sorted(
        (span.trace_id, span.span_id)
        for request in sink.accepted("traces")
        for resource in otlp.decode("traces", request.payload).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    )


class TailSampling(case.Case):
    def serve(self, executable=None, storage=None, must_stop=True):
        self.http, self.metrics_port = free_port(), free_port()
        config = CONFIG.format(
            http=self.http,
            metrics=self.metrics_port,
            back_end=self.back_end.url,
            exporter=", sending_queue: {storage: file_storage}" if storage else "",
            extensions=f"extensions: {{file_storage: {{directory: {storage}}}}}\n" if storage else "",
            extension_list="  extensions: [file_storage]\n" if storage else "",
        )
        if executable:
            return self.server(config, executable=executable).wait_until_ready()
        return self.daemon(config) if must_stop else self.server(config).wait_until_ready()

    def test_the_same_spans_go_on_as_in_the_go_collector(self):
        results = []
        for executable in peers.systems():
            self.back_end = self.sink()
            server = self.serve(executable)
            for body in requests(7):
                self.assertEqual(client.post(self.http, "traces", body).status, 200)
            self.wait_for_decisions(40)
            counted = {
                name: {
                    tuple(sorted(item for item in labels.items() if item[0] in ("policy", "decision", "sampled"))): value
                    for labels, value in self.series(name)
                    if value > 0
                }
                for name in COUNTED
            }
            server.stop()
            results.append((ids(self.back_end), counted))
        ours, theirs = results
        self.assertGreater(len(ours[0]), 20)
        self.assertEqual(ours[0], theirs[0])
        self.assertEqual(ours[1], theirs[1])

    def series(self, name):
        metrics = Metrics(self.metrics_port)
        full = METRIC + name
        return [
            (dict(labels), value)
            for metric, labels, value in metrics.samples
            if metric in (full, full + "_total")
        ]

    def wait_for_decisions(self, count):
        until = time.monotonic() + WITHIN_S
        while sum(value for _, value in self.series("global_count_traces_sampled")) < count:
            self.assertLess(time.monotonic(), until, "the traces are not decided")

    def test_a_kill_loses_nothing_that_waits(self):
        self.back_end = self.sink()
        bodies = list(requests(8))
        with tempfile.TemporaryDirectory() as storage:
            server = self.serve(storage=storage, must_stop=False)
            for body in bodies:
                self.assertEqual(client.post(self.http, "traces", body).status, 200)
            server.process.kill()
            server.process.wait(WITHIN_S)
            daemon = self.serve(storage=storage)
            self.wait_for_decisions(40)
            daemon.stop()
            killed = set(ids(self.back_end))
        # The same without a kill.
        self.back_end = self.sink()
        server = self.serve()
        for body in bodies:
            self.assertEqual(client.post(self.http, "traces", body).status, 200)
        self.wait_for_decisions(40)
        server.stop()
        self.assertEqual(killed, set(ids(self.back_end)))


if __name__ == "__main__":
    case.main()
