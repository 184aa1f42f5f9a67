# SPDX-License-Identifier: Apache-2.0
"""The shapes that people's collector configurations have: each starts here as it is, and passes the Go collector's
`validate` where the peer has its components."""

import pathlib
import re
import subprocess
import tempfile

from support import case, client, otlp, peers
from support.ports import free_port
from support.process import run

# PORT is another free port each time, SELF that of the own metrics, DATA that of OTLP over HTTP; SINK is the back-end.
OTLP = """\
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:PORT
      http:
        endpoint: 127.0.0.1:DATA
"""
BACK_END = """\
exporters:
  otlphttp:
    endpoint: SINK
    compression: none
"""
TELEMETRY = """\
  telemetry:
    metrics:
      level: detailed
      readers:
        - pull:
            exporter:
              prometheus: {host: 127.0.0.1, port: SELF}
"""
TRACES = f"""\
service:
{TELEMETRY}  pipelines:
    traces:
      receivers: [otlp]
      processors: [PROCESSORS]
      exporters: [otlphttp]
"""


def traces(processors, names, extra=""):
    """One pipeline of traces with these processors."""
    service = TRACES.replace("PROCESSORS", names)
    return OTLP + BACK_END + extra + "processors:\n" + processors + service


# Name, the Go peer can judge it, text.
SHAPES = [
    (
        "older names, limits in percent, nothing said of batch",
        True,
        OTLP
        + BACK_END
        + """\
  otlp/jaeger:
    endpoint: jaeger.invalid:4317
    tls:
      insecure: true
    sending_queue: {enabled: true, num_consumers: 2, queue_size: 100}
    retry_on_failure: {enabled: true, initial_interval: 5s, max_interval: 30s}
  debug:
    verbosity: detailed
    sampling_initial: 5
    sampling_thereafter: 200
processors:
  batch:
  memory_limiter:
    check_interval: 1s
    limit_percentage: 75
    spike_limit_percentage: 25
service:
"""
        + TELEMETRY
        + """\
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [otlp/jaeger, otlphttp, debug]}
    metrics: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [debug]}
    logs: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [debug]}
""",
    ),
    (
        "references with defaults",
        True,
        traces("  batch: {timeout: '${env:SHAPE_UNSET:-100ms}'}\n", "batch").replace(
            "    compression: none\n",
            "    compression: ${env:SHAPE_UNSET:-none}\n    headers: {"
            "authorization: 'Bearer ${env:SHAPE_UNSET:-secret}', x-tenant: '$${not-a-reference}'}\n",
        ),
    ),
    (
        "a receiver for browsers",
        True,
        traces("  batch: {timeout: 1ms, send_batch_size: 1024, send_batch_max_size: 2048}\n", "batch").replace(
            "127.0.0.1:DATA\n",
            "127.0.0.1:DATA\n        cors:\n          allowed_origins: ['http://*', 'https://*']\n"
            "          allowed_headers: ['*']\n          max_age: 7200\n        include_metadata: true\n",
        ),
    ),
    (
        "health, pages and profiles of the collector",
        True,
        traces("  batch: {timeout: 1ms}\n", "batch",
               "extensions:\n  health_check: {endpoint: '127.0.0.1:PORT', path: /health}\n"
               "  zpages: {endpoint: '127.0.0.1:PORT'}\n")
        .replace("service:\n", "service:\n  extensions: [health_check, zpages]\n")
        .replace("    metrics:\n", "    logs: {level: info, encoding: json}\n    metrics:\n", 1),
    ),
    (
        "resources and attributes are edited",
        True,
        traces(
            """\
  resource:
    attributes:
      - {key: deployment.environment, value: production, action: upsert}
      - {key: service.namespace, value: shop, action: insert}
      - {key: host.id, action: delete}
  attributes/hide:
    actions:
      - {key: http.request.header.authorization, action: delete}
      - {key: user.email, action: hash}
      - {key: db.statement, action: update, value: hidden}
""",
            "resource, attributes/hide",
        ),
    ),
    (
        "health checks are filtered, spans renamed",
        True,
        traces(
            """\
  filter/health:
    error_mode: ignore
    traces:
      span:
        - 'attributes["http.route"] == "/health"'
        - 'IsMatch(name, "^GET /ready")'
  transform:
    error_mode: ignore
    trace_statements:
      - context: span
        statements:
          - set(attributes["peer"], attributes["net.peer.name"]) where attributes["net.peer.name"] != nil
          - replace_pattern(attributes["http.url"], "token=[^&]*", "token=hidden")
""",
            "filter/health, transform",
        ),
    ),
    (
        "errors and slow traces are kept",
        True,
        traces(
            """\
  tail_sampling:
    decision_wait: 1s
    num_traces: 1000
    expected_new_traces_per_sec: 10
    policies:
      - {name: errors, type: status_code, status_code: {status_codes: [ERROR]}}
      - {name: slow, type: latency, latency: {threshold_ms: 500}}
      - name: paths
        type: string_attribute
        string_attribute: {key: http.route, values: [/pay.*], enabled_regex_matching: true}
      - {name: some, type: probabilistic, probabilistic: {sampling_percentage: 100}}
""",
            "tail_sampling",
        ),
    ),
    (
        "span metrics",
        True,
        OTLP
        + BACK_END
        + f"""\
  debug:
connectors:
  spanmetrics:
    namespace: span.metrics
    histogram:
      explicit:
        buckets: [2ms, 10ms, 100ms, 1s]
    dimensions:
      - name: http.method
        default: GET
      - name: http.status_code
    exemplars: {{enabled: true}}
    exclude_dimensions: ['status.code']
    metrics_flush_interval: 15s
service:
{TELEMETRY}  pipelines:
    traces: {{receivers: [otlp], exporters: [otlphttp, spanmetrics]}}
    metrics: {{receivers: [spanmetrics, otlp], exporters: [debug]}}
""",
    ),
    (
        "pipelines in stages",
        True,
        OTLP
        + BACK_END
        + f"""\
connectors:
  forward:
processors:
  probabilistic_sampler: {{sampling_percentage: 100}}
  batch/out: {{timeout: 1ms}}
service:
{TELEMETRY}  pipelines:
    traces/in: {{receivers: [otlp], processors: [probabilistic_sampler], exporters: [forward]}}
    traces/out: {{receivers: [forward], processors: [batch/out], exporters: [otlphttp]}}
""",
    ),
    (
        "a queue on disk, and a login at the back-end",
        True,
        traces("  batch: {timeout: 1ms}\n", "batch",
               "extensions:\n  file_storage: {directory: DIRECTORY, create_directory: true}\n"
               "  basicauth/client: {client_auth: {username: shop, password: secret}}\n")
        .replace("service:\n", "service:\n  extensions: [file_storage, basicauth/client]\n")
        .replace("    compression: none\n", "    compression: none\n    auth: {authenticator: basicauth/client}\n"
                 "    sending_queue: {storage: file_storage, queue_size: 1000}\n"),
    ),
    (
        "anchors and merge keys",
        True,
        "processors:\n  memory_limiter: &limits {check_interval: 1s, limit_mib: 400}\n"
        "  memory_limiter/second: {<<: *limits, spike_limit_mib: 50}\n"
        + OTLP
        + BACK_END
        + TRACES.replace("PROCESSORS", "memory_limiter, memory_limiter/second"),
    ),
    (
        "doors for older clients, metrics for Prometheus",
        False,
        OTLP
        + """\
  jaeger:
    protocols:
      grpc: {endpoint: '127.0.0.1:PORT'}
      thrift_http: {endpoint: '127.0.0.1:PORT'}
  zipkin: {endpoint: '127.0.0.1:PORT'}
  prometheus:
    config:
      scrape_configs:
        - job_name: otel-collector
          scrape_interval: 10s
          static_configs:
            - targets: ['127.0.0.1:SELF']
"""
        + BACK_END
        + f"""\
  prometheus:
    endpoint: 127.0.0.1:PORT
    namespace: shop
    send_timestamps: true
    metric_expiration: 180m
    resource_to_telemetry_conversion: {{enabled: true}}
  prometheusremotewrite: {{endpoint: 'http://prometheus.invalid/api/v1/write', tls: {{insecure: true}}}}
processors:
  resourcedetection: {{detectors: [env, system], timeout: 2s, override: false}}
  batch: {{timeout: 1ms}}
extensions:
  pprof: {{endpoint: '127.0.0.1:PORT'}}
service:
  extensions: [pprof]
{TELEMETRY}  pipelines:
    traces: {{receivers: [otlp, jaeger, zipkin], processors: [resourcedetection, batch], exporters: [otlphttp]}}
    metrics: {{receivers: [otlp, prometheus], processors: [batch], exporters: [prometheus, prometheusremotewrite]}}
""",
    ),
    (
        "the logging exporter of former times",
        False,
        OTLP
        + BACK_END
        + f"  logging: {{loglevel: debug}}\nservice:\n{TELEMETRY}  pipelines:\n"
        "    traces: {receivers: [otlp], exporters: [logging, otlphttp]}\n",
    ),
]


class CommonShapes(case.Case):
    def file(self, shape, sink):
        """The shape with its ports; returns its text, its path and the port of OTLP over HTTP."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        data = free_port()
        text = shape.replace("DATA", str(data)).replace("SELF", str(free_port())).replace("SINK", sink.url)
        text = text.replace("DIRECTORY", directory.name + "/storage")
        text = re.sub(r"\bPORT\b", lambda _: str(free_port()), text)
        path = pathlib.Path(directory.name, "config.yaml")
        path.write_text(text, encoding="utf-8")
        return text, str(path), data

    def test_each_starts_as_it_is_and_passes_spans_on(self):
        for name, _, shape in SHAPES:
            with self.subTest(name):
                sink = self.sink()
                text, _, data = self.file(shape, sink)
                daemon = self.daemon(text)
                body = otlp.traces(3).SerializeToString()
                self.assertEqual(client.post(data, "traces", body).status, 200)
                sink.wait(lambda requests: requests)
                self.assertEqual(daemon.stop(), 0)

    def test_the_go_collector_takes_the_same(self):
        otelcol = peers.otelcol()
        for name, is_beside, shape in SHAPES:
            with self.subTest(name):
                _, path, _ = self.file(shape, self.sink())
                self.assertEqual(run("validate", "--config", path).returncode, 0)
                if not is_beside:
                    continue
                command = [otelcol, "validate", "--config", path]
                done = subprocess.run(command, capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    case.main()
