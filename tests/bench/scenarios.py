# SPDX-License-Identifier: Apache-2.0
"""What is measured: one row per scenario, and for each the command or the configuration that makes
the relay, spanflame and the Go collector do the same work. Where the relay responds after the sink,
the others have their sending queue off; where it batches, they have the batch processor."""

from dataclasses import dataclass

import bodies


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    requests: int  # of one round; some two seconds of the relay
    http: bool = False
    tls: bool = False
    grpc_out: bool = False  # not of the relay, which knows one way out
    bodies: str = ""  # made by bodies.py; otherwise by the generator
    coding_in: str = ""
    coding_out: str = ""
    json_out: bool = False
    signal: str = "traces"
    queued: bool = False  # exporters have their defaults: sending_queue, retries, gzip
    push_in: bool = False  # Pyroscope's way
    push_out: bool = False
    join: bool = False
    marks: bool = True  # local roots, as by default
    late: bool = False  # some of the spans that profiles name never come
    spans: int = 1000  # or samples, of a request
    span_bytes: int = 672
    connections: int = 2
    in_flight: int = 4
    batch: str = ""  # keys of the batch processor
    edits: bool = False
    # Another row, which runs beside this one; the relay does that one's work.
    above: str | None = None
    # What spanflame must reach: a multiple of the relay, µs per span or profile, ns per byte that
    # comes in, and both above the other row.
    ratio_max: float | None = None
    us_max: float | None = None
    ns_max: float | None = None
    above_us_max: float | None = None
    above_ns_max: float | None = None

    @property
    def batches(self):
        return self.batch != ""

    @property
    def has_profiles(self):
        return self.signal == "profiles"

    @property
    def link_spans(self):
        """Of each request with traces that the profiles name."""
        return 1000

    @property
    def items(self):
        """What a request's cost is divided by: spans, or the one profile."""
        return 1 if self.has_profiles else self.spans

    @property
    def is_canned(self):
        """A few bodies come again and again."""
        return self.bodies != "" or self.coding_in != ""

    @property
    def keeps_bytes(self):
        """The bodies reach the sink as they were sent, one after the other."""
        return not self.edits and not self.is_canned and not self.json_out and not self.join

    @property
    def proofs(self):
        """How often each request at the sink contains a string if, and only if, the work of this
        row was done."""
        if self.edits:
            return {"eu-west-1": 1, "staging": 1, "process.pid": 0}
        if self.json_out:
            return {'"spanId":"': self.spans}
        if self.join and self.has_profiles:
            return {"span_name": 1}
        if self.join:
            return {"pyroscope.profile.id": self.spans // 8 if self.marks else 0}
        return {}

    @property
    def is_ours_alone(self):
        """The Go collector has nothing of the kind."""
        return self.push_in or self.push_out or self.join

    def body_arguments(self, folder):
        if not self.bodies:
            return ["--gzip"] if self.coding_in else []
        arguments = ["--bodies", folder]
        arguments += ["--coding", self.coding_in] if self.coding_in else []
        if self.push_in:
            return arguments + ["--path", "/push.v1.PusherService/Push",
                                "--type", "application/proto"]
        if self.has_profiles:
            return arguments + ["--path", "/v1development/profiles"]
        return arguments + (["--type", "application/json"] if self.bodies == "json" else [])

    def load_arguments(self, folder=None):
        """The folder has the bodies that were made before."""
        arguments = ["--spans", self.spans, "--span-bytes", self.span_bytes,
                     "--connections", self.connections, *self.body_arguments(folder)]
        arguments += ["--http"] if self.http else ["--in-flight", self.in_flight]
        return arguments + (["--tls"] if self.tls else [])

    def sink_arguments(self, requests):
        counted = [part for text in self.proofs for part in ("--count", text)]
        if not self.is_canned:
            return ["--spans-max", requests * self.spans, *counted]
        relayed = "push" if self.push_in else self.signal
        return ["--count-spans", "--relayed", relayed, *counted]

    def relay_arguments(self, port, sink_port):
        """The relay cannot edit: there it does the rest of the work."""
        flags = {"--http": self.http, "--inflate": self.coding_in == "gzip",
                 "--deflate": self.coding_out == "gzip", "--batch": self.batches}
        chosen = [flag for flag, is_on in flags.items() if is_on]
        return ["--port", port, "--sink-port", sink_port, *chosen]


PROFILES = {"http": True, "connections": 8, "signal": "profiles", "bodies": "profiles",
            "spans": bodies.OTLP_SAMPLES}

SCENARIOS = [
    Scenario("grpc", "gRPC → HTTP, uncompressed, 1000 spans/request", 10000, ratio_max=1.25),
    Scenario("grpc-grpc", "gRPC → gRPC, uncompressed, 1000 spans/request", 10000, grpc_out=True,
             ratio_max=1.4),
    Scenario("http", "HTTP → HTTP, uncompressed, 1000 spans/request", 10000, http=True,
             connections=8, ratio_max=1.25),
    Scenario("gzip", "gRPC gzip → HTTP gzip, 1000 spans/request", 2500, coding_in="gzip",
             coding_out="gzip", ratio_max=1.15),
    Scenario("defaults", "gRPC → HTTP, every key at its default (queue, gzip), 1000 spans/request",
             2500, coding_out="gzip", queued=True, ratio_max=1.15),
    Scenario("zstd", "gRPC zstd → HTTP zstd, 1000 spans/request", 2500, bodies="zstd",
             coding_in="zstd", coding_out="zstd", above="gzip", above_us_max=1.0),
    Scenario("edit", "gRPC → resource edit → HTTP, 1000 spans/request", 10000, edits=True,
             above="grpc", above_us_max=0.04),
    Scenario("single", "gRPC, 1 span/request, batched → HTTP", 1000000, spans=1, connections=4,
             in_flight=64, batch="{}", us_max=3.0),
    Scenario("gateway", "gRPC, 100 spans/request, edit, batch → HTTP gzip", 30000, spans=100,
             connections=4, in_flight=16, batch="{}", edits=True, coding_out="gzip", us_max=1.0),
    Scenario("json", "HTTP, JSON → HTTP, protobuf, 1000 spans/request", 1500, http=True,
             connections=8, bodies="json", above="http", ns_max=2.0),
    Scenario("json-out", "HTTP, protobuf → HTTP, JSON, 1000 spans/request", 1500, http=True,
             connections=8, json_out=True, above="http", ns_max=4.0),
    Scenario("tls-grpc", "gRPC over TLS → HTTP, 1000 spans/request", 5000, tls=True, above="grpc",
             above_us_max=0.4),
    Scenario("tls-http", "HTTP over TLS → HTTP, 1000 spans/request", 5000, http=True, tls=True,
             connections=8, above="http", above_us_max=0.4),
    Scenario("profiles-http", "OTLP profiles, HTTP → HTTP, 5000 samples; per profile", 3000,
             **PROFILES, ratio_max=2.0),
    Scenario("profiles-push", "OTLP profiles → Pyroscope's Push, 5000 samples; per profile", 300,
             **PROFILES, push_out=True, above="profiles-http", us_max=8000),
    Scenario("push", "Pyroscope's Push → Push, pprof of 1000 samples; per profile", 1000, http=True,
             connections=8, signal="profiles", bodies="push", push_in=True, push_out=True,
             spans=bodies.PPROF_SAMPLES, us_max=5000),
    Scenario("join-spans", "HTTP → join with `mark: off` → HTTP, 1000 spans/request", 5000,
             http=True, connections=8, join=True, marks=False, above="http", above_us_max=0.12),
    Scenario("join-marks", "the same with local roots marked, every eighth span", 5000, http=True,
             connections=8, join=True, above="http", above_us_max=0.12),
    Scenario("join-profiles", "OTLP profiles → join → HTTP, 5000 samples, every fourth of a span; "
             "per profile", 1500, **PROFILES, join=True, above="profiles-http", above_ns_max=1.5),
    Scenario("join-held", "the same when one span in 20 never comes: every profile waits for it",
             1500, **PROFILES, join=True, late=True, above="profiles-http", above_ns_max=1.5),
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

# Profiles that name a span that never comes wait no longer than this, or than there is room.
JOIN = """
  trace_profile_join:
    hold: 10ms%s"""

PUSH_RECEIVER = """pyroscope:
    endpoint: 127.0.0.1:%d"""

OTLP_RECEIVER = """otlp:
    protocols:
      %s"""


def receiver(scenario, port, certificates):
    if scenario.push_in:
        return PUSH_RECEIVER % port
    keys = f"endpoint: '127.0.0.1:{port}'"
    if scenario.tls:
        keys += f", tls: {{cert_file: {certificates}/cert.pem, key_file: {certificates}/key.pem}}"
    if scenario.http:
        return OTLP_RECEIVER % f"http: {{{keys}}}"
    return OTLP_RECEIVER % f"grpc: {{{keys}, max_recv_msg_size_mib: 16}}"


def exporter(scenario, sink_port, storage):
    lines = ["tls: {insecure: true}"] if scenario.grpc_out else []
    lines += [f"endpoint: http://127.0.0.1:{sink_port}"]
    if scenario.queued:
        return "\n    ".join(lines)
    if not scenario.push_out:
        lines += [f"compression: {scenario.coding_out or 'none'}"]
    lines += ["encoding: json"] if scenario.json_out else []
    if storage:
        lines += ["sending_queue: {storage: file_storage}"]
    elif not scenario.batches:
        lines += ["sending_queue: {enabled: false}", "retry_on_failure: {enabled: false}"]
    return "\n    ".join(lines)


def exporter_name(scenario):
    if scenario.push_out:
        return "pyroscope"
    return "otlp_grpc" if scenario.grpc_out else "otlp_http"


def configuration(scenario, port, sink_port, limit_mib=0, lanes=0, certificates=".", storage="",
                  budget_mib=0):
    """The YAML for spanflame and for the Go collector; lanes and budget_mib are for spanflame
    alone. storage is a directory."""
    processors = {}
    if limit_mib:
        processors["memory_limiter"] = MEMORY_LIMITER % limit_mib
    if scenario.edits:
        processors["resource"] = RESOURCE_EDIT
    if scenario.join:
        processors["trace_profile_join"] = JOIN % ("" if scenario.marks else "\n    mark: off")
    if scenario.batches:
        processors["batch"] = f"\n  batch: {scenario.batch}"
    name = exporter_name(scenario)
    source = receiver(scenario, port, certificates)
    section = f"processors:{''.join(processors.values())}\n" if processors else ""
    lanes_line = f"\n  lanes: {lanes}" if lanes else ""
    lanes_line += f"\n  budget_mib: {budget_mib}" if budget_mib else ""
    lanes_line += "\n  extensions: [file_storage]" if storage else ""
    extensions = (f"extensions:\n  file_storage: {{directory: {storage}, fsync: true}}\n"
                  if storage else "")
    pipelines = "".join(f"""
    {signal}:
      receivers: [{source.partition(':')[0]}]
      processors: [{', '.join(processors)}]
      exporters: [{name}]""" for signal in (("traces", "profiles") if scenario.join
                                            else (scenario.signal,)))
    return f"""# {scenario.title}
receivers:
  {source}
{section}{extensions}exporters:
  {name}:
    {exporter(scenario, sink_port, storage)}
service:{lanes_line}
  telemetry:
    logs: {{level: warn}}
    metrics: {{level: none}}
  pipelines:{pipelines}
"""
