# SPDX-License-Identifier: Apache-2.0
"""Works while Pyroscope's SDK profiles it and OpenTelemetry's traces it; prints, as JSON, which spans
it had. The options are those of every Pyroscope peer, and some more: see tests/peers/README.md.
"""

import argparse
import json
import time

import pyroscope
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind
from pyroscope.otel import PyroscopeSpanProcessor

ITERATIONS = 50_000
ITERATIONS_PER_SPAN = 1000


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


def tagged(span):
    """Its samples name the span, root or not."""
    found = ids(span)
    return pyroscope.tag_wrapper({key: found[key] for key in ("trace_id", "span_id")})


def serve_nested(tracer):
    """A request that does some of its work itself and most of it in a child."""
    with tracer.start_as_current_span("checkout", kind=SpanKind.SERVER) as root:
        with tagged(root):
            parse(0.4)
        with tracer.start_as_current_span("invoice") as child, tagged(child):
            render(1)
    return [ids(root), ids(child)]


def run_batch(tracer):
    """All of it under one root span, of which the profiler knows nothing."""
    with tracer.start_as_current_span("nightly") as root:
        for first in range(0, ITERATIONS, ITERATIONS_PER_SPAN):
            with tracer.start_as_current_span("rows"):
                for number in range(first, first + ITERATIONS_PER_SPAN):
                    step(number)
    return [ids(root)]


def run_batch_of_one_span(tracer):
    with tracer.start_as_current_span("nightly") as root:
        for number in range(ITERATIONS):
            step(number)
    return [ids(root)]


WORK = {
    "requests": serve,
    "nested": serve_nested,
    "batch": run_batch,
    "batch-of-one-span": run_batch_of_one_span,
}


def main():
    parser = argparse.ArgumentParser()
    for name in ("spans", "profiles", "service"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--work", required=True, choices=WORK)
    parser.add_argument("--spans-every", type=float, default=0.5, help="seconds")
    parser.add_argument("--profiles-every", type=int, default=1, help="seconds")
    parser.add_argument("--last", choices=("spans", "profiles"), default="profiles")
    options = parser.parse_args()
    pyroscope.configure(
        application_name=options.service,
        server_address=options.profiles,
        upload_interval=options.profiles_every,
    )
    provider = TracerProvider(resource=Resource({"service.name": options.service}))
    if options.work == "requests":
        provider.add_span_processor(PyroscopeSpanProcessor())
    provider.add_span_processor(
        BatchSpanProcessor(
            OTLPSpanExporter(endpoint=f"{options.spans}/v1/traces"),
            schedule_delay_millis=1000 * options.spans_every,
        )
    )
    spans = WORK[options.work](provider.get_tracer("peer"))
    ends = [provider.shutdown, pyroscope.shutdown]
    for end in ends if options.last == "profiles" else reversed(ends):
        end()
    print(json.dumps({"sdk": "python", "spans": spans}))


main()
