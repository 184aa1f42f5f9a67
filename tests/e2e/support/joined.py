# SPDX-License-Identifier: Apache-2.0
"""A daemon that joins profiles and spans, programs that send it both, and readers of its output."""

from . import case, client, metrics, otlp, profiled, profiles
from .ports import free_port

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
MS = 10**6
SECOND = 10**9


def config(ports, exporters, join="", extra=""):
    """otlp and pyroscope in, the join in both pipelines; `exporters` by name, in YAML. Spans
    go to the first one."""
    texts = "".join(f"  {name}:\n{text}" for name, text in exporters.items())
    return (
        "receivers:\n  otlp:\n    protocols:\n      http:\n"
        f"        endpoint: 127.0.0.1:{ports['otlp']}\n"
        f"  pyroscope:\n    endpoint: 127.0.0.1:{ports['pyroscope']}\n"
        "processors:\n  trace_profile_join:\n"
        f"    attributes: [span_name, http.route, duration_bucket]\n{join}"
        f"exporters:\n{texts}"
        f"service:\n{metrics_of(ports)}{extra}  pipelines:\n"
        "    traces:\n      receivers: [otlp]\n      processors: [trace_profile_join]\n"
        f"      exporters: [{next(iter(exporters))}]\n"
        "    profiles:\n      receivers: [otlp, pyroscope]\n"
        f"      processors: [trace_profile_join]\n      exporters: [{list(exporters)[-1]}]\n"
    )


def metrics_of(ports):
    return case.metrics_service(ports["metrics"])


def free_ports():
    return {name: free_port() for name in ("otlp", "pyroscope", "metrics")}


def spans_of(requests):
    """Every span by its id."""
    return {
        span.span_id: span
        for request in requests
        if request.signal == "traces"
        for resource in otlp.decode("traces", request.payload).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }


def samples_of(requests):
    """(stack, attributes, span id) of every sample that has a link."""
    payloads = [r.payload for r in requests if r.path == profiles.PATH]
    return [
        (stack, {key: value[1] for key, value in attributes}, link[1])
        for _, stack, attributes, link, _, _ in profiles.samples_of(payloads)
        if link[1]
    ]


def trace(spans, service):
    """A request of (trace id, span id, name, start, end), and the parent's span id if there is one."""
    request = otlp.REQUESTS["traces"]()
    resource = request.resource_spans.add()
    otlp.add_attributes(resource.resource.attributes, {"service.name": service})
    scope = resource.scope_spans.add()
    for trace_id, span_id, name, start_ns, end_ns, *parent in spans:
        scope.spans.add(
            trace_id=trace_id,
            span_id=span_id,
            parent_span_id=b"".join(parent),
            name=name,
            start_time_unix_nano=start_ns,
            end_time_unix_nano=end_ns,
        )
    return request.SerializeToString()


def ids(number):
    return number.to_bytes(16, "big"), number.to_bytes(8, "big")


class Joined(case.Case):
    """A daemon with its ports and its back-end."""

    def configure(self, exporters=None, **options):
        self.ports = free_ports()
        self.back_end = self.sink()
        exporters = {"otlp_http": f"    endpoint: {self.back_end.url}\n", **(exporters or {})}
        return config(self.ports, exporters, **options)

    def start(self, exporters=None, **options):
        return self.daemon(self.configure(exporters, **options))

    def run_sdk(self, sdk, service="shop", work="requests", **more):
        ports = self.ports["otlp"], self.ports["pyroscope"]
        return profiled.run(sdk, *ports, service, work, **more)

    def send(self, path, body):
        headers = {"Content-Type": client.PROTOBUF}
        response = client.request(self.ports["otlp"], "POST", path, body, headers)
        self.assertEqual(response.status, 200, response.body)

    def counter(self, name, **labels):
        found = metrics.Metrics(self.ports["metrics"])
        return int(found.sum(f"otelcol_processor_trace_profile_join_{name}", **labels))
