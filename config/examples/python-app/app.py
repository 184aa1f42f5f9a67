# SPDX-License-Identifier: Apache-2.0
"""An application that makes one trace a second; the SDK reads where to from OTEL_* variables."""

import itertools
import signal
import threading

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=500))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("shop")

for order in itertools.count(1):
    with tracer.start_as_current_span("checkout", attributes={"order": order}):
        with tracer.start_as_current_span("pay"):
            pass
    if stopping.wait(1):
        break
provider.shutdown()
