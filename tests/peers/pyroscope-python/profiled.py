# SPDX-License-Identifier: Apache-2.0
"""Works while Pyroscope's SDK profiles it and OpenTelemetry's traces it; prints, as JSON, which spans
it had. The options are those of every Pyroscope peer: see tests/peers/README.md.
"""

import argparse
import json
import time

import pyroscope
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pyroscope.otel import PyroscopeSpanProcessor

ITERATIONS = 50_000
ITERATIONS_PER_SPAN = 1000
UPLOAD_S = 1


def render(cpu_s):
    until = time.thread_time() + cpu_s
    while time.thread_time() < until:
        sum(range(500))


def parse(cpu_s):
    until = time.thread_time() + cpu_s
    while time.thread_time() < until:
        sum(range(600))


def step(number):
    return sum(range(number % 1000 + 2000))


def ids(span):
    context = span.get_span_context()
    return {
        "name": span.name,
        "trace_id": f"{context.trace_id:032x}",
        "span_id": f"{context.span_id:016x}",
    }


def serve(tracer):
    """A slow request, and fast ones before and after it."""
    spans = []
    for name, work, cpu_s in [("search", parse, 0.2), ("checkout", render, 1), ("list", parse, 0.2)]:
        with tracer.start_as_current_span(name, attributes={"http.route": f"/{name}"}) as span:
            work(cpu_s)
        spans.append(ids(span))
    return spans


def run_batch(tracer):
    """All of it under one root span, of which the profiler knows nothing."""
    with tracer.start_as_current_span("nightly") as root:
        for first in range(0, ITERATIONS, ITERATIONS_PER_SPAN):
            with tracer.start_as_current_span("rows"):
                for number in range(first, first + ITERATIONS_PER_SPAN):
                    step(number)
    return [ids(root)]


def main():
    parser = argparse.ArgumentParser()
    for name in ("spans", "profiles", "service", "work"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    pyroscope.configure(
        application_name=options.service,
        server_address=options.profiles,
        upload_interval=UPLOAD_S,
    )
    provider = TracerProvider(resource=Resource({"service.name": options.service}))
    if options.work == "requests":
        provider.add_span_processor(PyroscopeSpanProcessor())
    provider.add_span_processor(
        BatchSpanProcessor(
            OTLPSpanExporter(endpoint=f"{options.spans}/v1/traces"), schedule_delay_millis=500
        )
    )
    tracer = provider.get_tracer("peer")
    spans = serve(tracer) if options.work == "requests" else run_batch(tracer)
    provider.shutdown()
    pyroscope.shutdown()
    print(json.dumps({"sdk": "python", "spans": spans}))


main()
