# SPDX-License-Identifier: Apache-2.0
"""The real Go collector in front of the daemon and behind it."""

from support import case, client, otlp, peers
from support.ports import free_port

REQUESTS, SPANS = 40, 25


class Chain(case.Case):
    """client -> collector -> spanflame -> collector -> back-end, all with their queues on."""

    def collector(self, exporters):
        """A Go collector that passes everything on; returns its two ports."""
        grpc, http = free_port(), free_port()
        pipelines = "".join(
            f"    {signal}: {{receivers: [otlp], exporters: [{exporters.split(':')[0].strip()}]}}\n"
            for signal in case.SIGNALS
        )
        self.server(
            "receivers:\n  otlp:\n    protocols:\n"
            f"      grpc:\n        endpoint: 127.0.0.1:{grpc}\n"
            f"      http:\n        endpoint: 127.0.0.1:{http}\n"
            f"exporters:\n{exporters}service:\n{case.QUIET}  pipelines:\n{pipelines}",
            executable=peers.otelcol(),
        ).wait_until_ready()
        return grpc, http

    def check(self, way_in, codec):
        sink = self.sink()
        _, behind = self.collector(f"  otlphttp:\n    endpoint: {sink.url}\n")
        grpc, http = free_port(), free_port()
        daemon = self.daemon(
            case.otlp_config(
                grpc,
                http,
                f"http://127.0.0.1:{behind}",
                exporter=f"    compression: {codec}\n",
                processors={"batch": "    timeout: 50ms\n"},
            )
        )
        _, front = self.collector(way_in(grpc, http, codec))
        sent = self.send(front)
        wanted = {signal: len(found) for signal, found in sent.items()}
        sink.wait(lambda requests: sizes(requests) == wanted)
        self.compare(sent, sink.accepted())
        self.assertEqual(daemon.stop(), 0)

    def send(self, port):
        """Requests of every signal; returns what they held."""
        bodies = {signal: [] for signal in case.SIGNALS}
        for _ in range(REQUESTS):
            for signal in case.SIGNALS:
                body = otlp.sample(signal, SPANS).SerializeToString()
                self.assertEqual(client.post(port, signal, body).status, 200)
                bodies[signal].append(body)
        return contents(bodies)

    def compare(self, sent, accepted):
        bodies = {signal: [] for signal in case.SIGNALS}
        for request in accepted:
            bodies[request.signal].append(request.payload)
        self.assertEqual(contents(bodies), sent)

    def test_over_grpc(self):
        self.check(grpc_exporter, "none")

    def test_over_grpc_with_gzip(self):
        self.check(grpc_exporter, "gzip")

    def test_over_http(self):
        self.check(http_exporter, "none")

    def test_over_http_with_gzip(self):
        self.check(http_exporter, "gzip")

    def test_over_grpc_with_the_other_codecs(self):
        for codec in ("snappy", "zstd"):
            with self.subTest(codec):
                self.check(grpc_exporter, codec)

    def test_over_http_with_the_other_codecs(self):
        for codec in ("zstd", "snappy", "x-snappy-framed", "zlib", "deflate", "lz4"):
            with self.subTest(codec):
                self.check(http_exporter, codec)


def grpc_exporter(grpc, http, codec):
    return (
        f"  otlp:\n    endpoint: 127.0.0.1:{grpc}\n    compression: {codec}\n"
        "    tls:\n      insecure: true\n"
    )


def http_exporter(grpc, http, codec):
    return f"  otlphttp:\n    endpoint: http://127.0.0.1:{http}\n    compression: {codec}\n"


def contents(bodies):
    """Spans by id, data points by their value, log records by their time: each once."""
    return {
        "traces": otlp.spans_of(bodies["traces"]),
        "metrics": sorted(
            point.as_int
            for body in bodies["metrics"]
            for resource in otlp.decode("metrics", body).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.gauge.data_points
        ),
        "logs": sorted(
            record.time_unix_nano
            for body in bodies["logs"]
            for resource in otlp.decode("logs", body).resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ),
    }


def sizes(requests):
    bodies = {signal: [] for signal in case.SIGNALS}
    for request in requests:
        bodies[request.signal].append(request.payload)
    return {signal: len(found) for signal, found in contents(bodies).items()}


if __name__ == "__main__":
    case.main()
