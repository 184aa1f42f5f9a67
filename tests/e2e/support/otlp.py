# SPDX-License-Identifier: Apache-2.0
"""OTLP requests made and read with the official classes: the oracle of the end-to-end tests."""

import itertools

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

REQUESTS = {
    "traces": ExportTraceServiceRequest,
    "metrics": ExportMetricsServiceRequest,
    "logs": ExportLogsServiceRequest,
}
RESOURCES = {"traces": "resource_spans", "metrics": "resource_metrics", "logs": "resource_logs"}
RESPONSE = ExportTraceServiceResponse  # of all signals: partial_success is field 1 of each
_serial = itertools.count(1)


def decode(signal, payload):
    return REQUESTS[signal].FromString(payload)


def set_value(any_value, value):
    """An AnyValue from a Python value."""
    if isinstance(value, bool):
        any_value.bool_value = value
    elif isinstance(value, int):
        any_value.int_value = value
    elif isinstance(value, float):
        any_value.double_value = value
    elif isinstance(value, bytes):
        any_value.bytes_value = value
    elif isinstance(value, list):
        any_value.array_value.SetInParent()
        for element in value:
            set_value(any_value.array_value.values.add(), element)
    elif isinstance(value, dict):
        any_value.kvlist_value.SetInParent()
        for key, element in value.items():
            pair = any_value.kvlist_value.values.add(key=key)
            set_value(pair.value, element)
    elif value is not None:
        any_value.string_value = value


def value_of(any_value):
    """A Python value from an AnyValue, with its type visible."""
    kind = any_value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [value_of(element) for element in any_value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: value_of(pair.value) for pair in any_value.kvlist_value.values}
    return (kind, getattr(any_value, kind))


def add_attributes(repeated, attributes):
    for key, value in attributes.items():
        set_value(repeated.add(key=key).value, value)


def attributes_of(repeated):
    """In order, duplicates kept."""
    return [(pair.key, value_of(pair.value)) for pair in repeated]


def traces(spans=1, resource=None, scopes=1, text_bytes=0):
    """A request with `spans` spans, each with ids that no other span of this process has."""
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    add_attributes(resource_spans.resource.attributes, resource or {"service.name": "e2e"})
    for scope in range(scopes):
        scope_spans = resource_spans.scope_spans.add()
        scope_spans.scope.name = f"scope-{scope}"
        for index in range(scope, spans, scopes):
            serial = next(_serial)
            span = scope_spans.spans.add(
                trace_id=serial.to_bytes(16, "big"),
                span_id=serial.to_bytes(8, "big"),
                name=f"span-{index}",
                start_time_unix_nano=1_700_000_000_000_000_000 + serial,
                end_time_unix_nano=1_700_000_000_000_001_000 + serial,
            )
            add_attributes(span.attributes, {"index": index, "text": "x" * text_bytes})
            span.status.SetInParent()  # as the Go collector writes it, so that spans compare equal
    return request


def metrics(points=1):
    request = ExportMetricsServiceRequest()
    resource_metrics = request.resource_metrics.add()
    add_attributes(resource_metrics.resource.attributes, {"service.name": "e2e"})
    scope_metrics = resource_metrics.scope_metrics.add()
    for index in range(points):
        metric = scope_metrics.metrics.add(name=f"metric-{index}", unit="1")
        metric.gauge.data_points.add(time_unix_nano=1, as_int=next(_serial))
    return request


def logs(records=1):
    request = ExportLogsServiceRequest()
    resource_logs = request.resource_logs.add()
    add_attributes(resource_logs.resource.attributes, {"service.name": "e2e"})
    scope_logs = resource_logs.scope_logs.add()
    for index in range(records):
        record = scope_logs.log_records.add(time_unix_nano=next(_serial))
        record.body.string_value = f"log-{index}"
    return request


def sample(signal, items=1):
    """A request of any signal."""
    return {"traces": traces, "metrics": metrics, "logs": logs}[signal](items)


def spans_of(payloads):
    """Every span of these trace payloads, by span id; a duplicate is an error."""
    found = {}
    for payload in payloads:
        for resource_spans in decode("traces", payload).resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    if span.span_id in found:
                        raise AssertionError(f"span {span.span_id.hex()} arrived twice")
                    found[span.span_id] = span
    return found


def metrics_of(payloads):
    """Every metric's name and its largest value: SDKs repeat cumulative sums when they stop."""
    found = {}
    for payload in payloads:
        for resource_metrics in decode("metrics", payload).resource_metrics:
            for scope_metrics in resource_metrics.scope_metrics:
                for metric in scope_metrics.metrics:
                    points = getattr(metric, metric.WhichOneof("data")).data_points
                    values = [getattr(point, point.WhichOneof("value")) for point in points]
                    found[metric.name] = max([*values, found.get(metric.name, 0)])
    return found


def logs_of(payloads):
    """Every log record's body, in order."""
    return [
        record.body.string_value
        for payload in payloads
        for resource_logs in decode("logs", payload).resource_logs
        for scope_logs in resource_logs.scope_logs
        for record in scope_logs.log_records
    ]
