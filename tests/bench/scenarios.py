# SPDX-License-Identifier: Apache-2.0
"""What is measured: one row per scenario, and for each the command or the configuration that makes
the relay, spanflame and the Go collector do the same work. Where the relay answers after the sink,
the others have their sending queue off; where it batches, they have the batch processor."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    requests: int  # of one round; some two seconds of the relay
    http: bool = False
    grpc_out: bool = False  # not of the relay, which knows one way out
    gzip_in: bool = False
    gzip_out: bool = False
    spans: int = 1000
    span_bytes: int = 672
    connections: int = 2
    in_flight: int = 4
    batch: str = ""  # keys of the batch processor
    edits: bool = False
    # What spanflame must reach: a multiple of the relay, µs per span, or µs above another row.
    ratio_max: float | None = None
    us_max: float | None = None
    above: str | None = None
    above_us_max: float | None = None

    @property
    def batches(self):
        return self.batch != ""

    @property
    def keeps_bytes(self):
        """The bodies reach the sink as they were sent, one after the other."""
        return not self.edits and not self.gzip_in

    def load_arguments(self):
        arguments = ["--spans", self.spans, "--span-bytes", self.span_bytes,
                     "--connections", self.connections]
        arguments += ["--http"] if self.http else ["--in-flight", self.in_flight]
        return arguments + (["--gzip"] if self.gzip_in else [])

    def sink_arguments(self, requests):
        if self.gzip_in:
            return ["--count-spans"]
        return ["--spans-max", requests * self.spans]

    def relay_arguments(self, port, sink_port):
        """The relay cannot edit: there it does the rest of the work."""
        flags = {"--http": self.http, "--inflate": self.gzip_in, "--deflate": self.gzip_out,
                 "--batch": self.batches}
        chosen = [flag for flag, is_on in flags.items() if is_on]
        return ["--port", port, "--sink-port", sink_port, *chosen]


SCENARIOS = [
    Scenario("grpc", "gRPC → HTTP, uncompressed, 1000 spans/request", 10000, ratio_max=1.25),
    Scenario("grpc-grpc", "gRPC → gRPC, uncompressed, 1000 spans/request", 10000, grpc_out=True,
             ratio_max=1.4),
    Scenario("http", "HTTP → HTTP, uncompressed, 1000 spans/request", 10000, http=True,
             connections=8, ratio_max=1.25),
    Scenario("gzip", "gRPC gzip → HTTP gzip, 1000 spans/request", 2500, gzip_in=True, gzip_out=True,
             ratio_max=1.15),
    Scenario("edit", "gRPC → resource edit → HTTP, 1000 spans/request", 10000, edits=True,
             above="grpc", above_us_max=0.04),
    Scenario("single", "gRPC, 1 span/request, batched → HTTP", 1000000, spans=1, connections=4,
             in_flight=64, batch="{}", us_max=3.0),
    Scenario("gateway", "gRPC, 100 spans/request, edit, batch → HTTP gzip", 30000, spans=100,
             connections=4, in_flight=16, batch="{}", edits=True, gzip_out=True, us_max=1.0),
]

RESOURCE_EDIT = """
  resource:
    attributes:
    - {key: deployment.region, value: eu-west-1, action: insert}
    - {key: deployment.environment.name, value: staging, action: update}
    - {key: process.pid, action: delete}"""

MEMORY_LIMITER = """
  memory_limiter:
    check_interval: 100ms
    limit_mib: %d"""


def receiver(scenario, port):
    if scenario.http:
        return f"http: {{endpoint: '127.0.0.1:{port}'}}"
    return f"grpc: {{endpoint: '127.0.0.1:{port}', max_recv_msg_size_mib: 16}}"


def exporter(scenario, sink_port):
    lines = ["tls: {insecure: true}"] if scenario.grpc_out else []
    lines += [f"endpoint: http://127.0.0.1:{sink_port}",
             f"compression: {'gzip' if scenario.gzip_out else 'none'}"]
    if not scenario.batches:
        lines += ["sending_queue: {enabled: false}", "retry_on_failure: {enabled: false}"]
    return "\n    ".join(lines)


def configuration(scenario, port, sink_port, limit_mib=0, lanes=0):
    """The YAML for spanflame and for the Go collector; lanes is for spanflame alone."""
    processors = {}
    if limit_mib:
        processors["memory_limiter"] = MEMORY_LIMITER % limit_mib
    if scenario.edits:
        processors["resource"] = RESOURCE_EDIT
    if scenario.batches:
        processors["batch"] = f"\n  batch: {scenario.batch}"
    name = "otlp_grpc" if scenario.grpc_out else "otlp_http"
    section = f"processors:{''.join(processors.values())}\n" if processors else ""
    lanes_line = f"\n  lanes: {lanes}" if lanes else ""
    return f"""# {scenario.title}
receivers:
  otlp:
    protocols:
      {receiver(scenario, port)}
{section}exporters:
  {name}:
    {exporter(scenario, sink_port)}
service:{lanes_line}
  telemetry:
    logs: {{level: warn}}
    metrics: {{level: none}}
  pipelines:
    traces:
      receivers: [otlp]
      processors: [{', '.join(processors)}]
      exporters: [{name}]
"""
