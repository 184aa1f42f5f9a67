# SPDX-License-Identifier: Apache-2.0
"""Emits known telemetry through the OpenTelemetry SDK for Python and prints, as JSON, what it sent.

The options are those of every peer: see tests/peers/README.md.
"""

import argparse
import importlib
import json
import logging
import sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

TEXT = "ä€𝄞"
MODULES = {"traces": "trace_exporter", "metrics": "metric_exporter", "logs": "_log_exporter"}
CLASSES = {"traces": "OTLPSpanExporter", "metrics": "OTLPMetricExporter", "logs": "OTLPLogExporter"}


def exporter(options, signal):
    """The OTLP exporter of one signal, over the protocol and with the compression asked for."""
    module = importlib.import_module(
        f"opentelemetry.exporter.otlp.proto.{options.protocol}.{MODULES[signal]}"
    )
    cls = getattr(module, CLASSES[signal])
    if options.protocol == "grpc":
        import grpc

        gzip = grpc.Compression.Gzip if options.compression == "gzip" else None
        return cls(endpoint=options.endpoint, insecure=not options.tls, compression=gzip)
    gzip = Compression.Gzip if options.compression == "gzip" else Compression.NoCompression
    scheme = "https" if options.tls else "http"
    return cls(endpoint=f"{scheme}://{options.endpoint}/v1/{signal}", compression=gzip)


def emit_spans(options, resource):
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(exporter(options, "traces")))
    tracer = provider.get_tracer("peer")
    sent = []
    for index in range(options.spans):
        attributes = {
            "peer.index": index,
            "peer.text": TEXT,
            "peer.ratio": 0.5,
            "peer.flag": True,
            "peer.list": ["a", "b"],
        }
        with tracer.start_as_current_span(f"python-span-{index}", attributes=attributes) as span:
            span.add_event("peer-event")
        context = span.get_span_context()
        sent.append(
            {
                "trace_id": f"{context.trace_id:032x}",
                "span_id": f"{context.span_id:016x}",
                "name": f"python-span-{index}",
            }
        )
    provider.force_flush()
    provider.shutdown()
    return sent


def emit_metrics(options, resource):
    reader = PeriodicExportingMetricReader(
        exporter(options, "metrics"), export_interval_millis=3_600_000
    )
    provider = MeterProvider(resource=resource, metric_readers=[reader])
    meter = provider.get_meter("peer")
    sent = {}
    for index in range(options.points):
        name = f"python.metric.{index}"
        meter.create_counter(name).add(index + 1)
        sent[name] = index + 1
    provider.force_flush()
    provider.shutdown()
    return sent


def emit_logs(options, resource):
    from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    provider = LoggerProvider(resource=resource)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter(options, "logs")))
    logger = logging.getLogger("peer")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(LoggingHandler(logger_provider=provider))
    sent = [f"python-log-{index} {TEXT}" for index in range(options.logs)]
    for body in sent:
        logger.info(body)
    provider.force_flush()
    provider.shutdown()
    return sent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--protocol", choices=["grpc", "http"], default="http")
    parser.add_argument("--endpoint", default="127.0.0.1:4318")
    parser.add_argument("--compression", choices=["none", "gzip"], default="none")
    parser.add_argument("--service", default="peer-python")
    parser.add_argument("--spans", type=int, default=10)
    parser.add_argument("--points", type=int, default=3)
    parser.add_argument("--logs", type=int, default=5)
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    resource = Resource({"service.name": options.service})
    sent = {
        "sdk": "python",
        "spans": emit_spans(options, resource),
        "metrics": emit_metrics(options, resource),
        "logs": emit_logs(options, resource),
    }
    json.dump(sent, sys.stdout)
    print()


if __name__ == "__main__":
    main()
