# SPDX-License-Identifier: Apache-2.0
"""A strict gRPC back-end (grpcio and the official classes) that responds as a script says."""

import concurrent.futures
import threading

import grpc
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as traces_grpc

from .sink import WAIT_S

SERVICES = {
    "traces": traces_grpc.add_TraceServiceServicer_to_server,
    "metrics": metrics_grpc.add_MetricsServiceServicer_to_server,
    "logs": logs_grpc.add_LogsServiceServicer_to_server,
}
RESPONSES = {
    "traces": traces.ExportTraceServiceResponse,
    "metrics": metrics.ExportMetricsServiceResponse,
    "logs": logs.ExportLogsServiceResponse,
}


def retry_info(code, message, seconds):
    """grpc-status-details-bin with a RetryInfo; seconds may be a fraction."""
    delay = duration_pb2.Duration()
    delay.FromNanoseconds(int(seconds * 1e9))
    return status_details(code, message, error_details_pb2.RetryInfo(retry_delay=delay))


def status_details(code, message, *details):
    """grpc-status-details-bin with these messages."""
    status = status_pb2.Status(code=code, message=message)
    for detail in details:
        status.details.add().Pack(detail)
    return (("grpc-status-details-bin", status.SerializeToString()),)


class GrpcSink:
    """Serves until closed. `refuse` is called with each request's signal; it returns None for OK, or
    (code, message, trailing metadata). `warn` returns the error_message of each partial_success."""

    def __init__(self, port, refuse=None, options=(), credentials=None, warn=None):
        self.port = port
        self.warn = warn
        self.requests = []  # (signal, request) that got OK
        self.calls = 0
        self.at_once = 0
        self.metadata = {}  # of the last call
        self._running = 0
        self._refuse = refuse or (lambda signal: None)
        self._changed = threading.Condition()
        self._server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(16),
            options=(("grpc.so_reuseport", 0), *options),
            compression=grpc.Compression.Gzip,
        )
        for signal, add in SERVICES.items():
            add(_Servicer(self, signal), self._server)
        if credentials:
            self._server.add_secure_port(f"127.0.0.1:{port}", credentials)
        else:
            self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    def take(self, signal, request, context):
        with self._changed:
            self.calls += 1
            self._running += 1
            self.at_once = max(self.at_once, self._running)
            self.metadata = dict(context.invocation_metadata())
        failure = self._refuse(signal)
        with self._changed:
            self._running -= 1
            if failure is None:
                self.requests.append((signal, request))
            self._changed.notify_all()
        if failure is not None:
            code, message, trailers = failure
            context.set_code(code)
            context.set_details(message)
            context.set_trailing_metadata(trailers)

    def bodies(self, signal):
        with self._changed:
            return [
                request.SerializeToString() for found, request in self.requests if found == signal
            ]

    def wait(self, predicate, within=WAIT_S):
        """Until predicate(self) holds."""
        with self._changed:
            if not self._changed.wait_for(lambda: predicate(self), within):
                raise AssertionError(
                    f"the back-end never got what it waited for, only {len(self.requests)} of "
                    f"{self.calls} calls"
                )

    def close(self, grace=None):
        self._server.stop(grace).wait()


class _Servicer:
    """Export of one signal."""

    def __init__(self, sink, signal):
        self._sink = sink
        self._signal = signal

    def Export(self, request, context):
        self._sink.take(self._signal, request, context)
        response = RESPONSES[self._signal]()
        if self._sink.warn:
            response.partial_success.error_message = self._sink.warn()
        return response
