# SPDX-License-Identifier: Apache-2.0
"""Clients that send exact bytes: HTTP/1.1 by the standard library, gRPC by grpcio or by hand."""

import gzip
import http.client
import socket
from dataclasses import dataclass, field

import grpc
import h2.config
import h2.connection
import h2.events

TIMEOUT_S = 30
BY_HAND_TIMEOUT_S = 5  # the Go collector never responds to some requests
PROTOBUF = "application/x-protobuf"
SERVICES = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}


@dataclass
class Response:
    status: int
    headers: dict = field(default_factory=dict)
    body: bytes = b""


def request(port, method, path, body=b"", headers=None, timeout_s=TIMEOUT_S):
    """One HTTP/1.1 request with these headers and no others but Host and Content-Length. A header
    `Transfer-Encoding: chunked` sends the body as one chunk instead."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if (headers or {}).get("Transfer-Encoding") == "chunked":
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        elif body or method == "POST":
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        received = connection.getresponse()
        names = {name.lower(): value for name, value in received.getheaders()}
        return Response(received.status, names, received.read())
    finally:
        connection.close()


def open_connection(port):
    """A bare TCP connection."""
    return socket.create_connection(("127.0.0.1", port), TIMEOUT_S)


def post(port, signal, body, compressed=False):
    """One OTLP/HTTP request as an SDK makes it."""
    headers = {"Content-Type": PROTOBUF}
    if compressed:
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body)
    return request(port, "POST", f"/v1/{signal}", body, headers)


def get(port, path):
    return request(port, "GET", path)


class GrpcClient:
    """One HTTP/2 connection that sends the bytes it is given as the message."""

    def __init__(self, port):
        self._channel = grpc.insecure_channel(
            f"127.0.0.1:{port}",
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
        )

    def export(self, signal, message, compressed=False, metadata=None, method=None):
        """The status code's name and message: ("OK", "")."""
        call = self._channel.unary_unary(
            method or SERVICES[signal], request_serializer=bytes, response_deserializer=bytes
        )
        compression = grpc.Compression.Gzip if compressed else grpc.Compression.NoCompression
        try:
            call(message, timeout=TIMEOUT_S, compression=compression, metadata=metadata)
        except grpc.RpcError as error:
            return error.code().name, error.details()
        return "OK", ""

    def close(self):
        self._channel.close()


def grpc_frame(message, flag=0, size=None):
    """A gRPC message with its prefix of five bytes, which may be wrong."""
    return bytes([flag]) + (len(message) if size is None else size).to_bytes(4, "big") + message


def grpc_by_hand(port, body, method="POST", path=SERVICES["traces"], headers=None):
    """One gRPC exchange with any bytes: HTTP status, and headers and trailers in one table."""
    fields = {"content-type": "application/grpc", "te": "trailers", **(headers or {})}
    pairs = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost")]
    pairs += [(name, value) for name, value in fields.items() if value is not None]
    config = h2.config.H2Configuration(
        validate_outbound_headers=False, normalize_outbound_headers=False, header_encoding="utf-8"
    )
    connection = h2.connection.H2Connection(config)
    connection.initiate_connection()
    connection.send_headers(1, pairs, end_stream=body is None)
    if body is not None:
        connection.send_data(1, body, end_stream=True)
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as stream:
        stream.settimeout(BY_HAND_TIMEOUT_S)
        stream.sendall(connection.data_to_send())
        return _read_response(connection, stream)


def _read_response(connection, stream):
    """Until the stream ends, by END_STREAM, a reset or the connection's end."""
    response = Response(0)
    while data := stream.recv(65536):
        for event in connection.receive_data(data):
            if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                response.headers.update(event.headers)
            elif isinstance(event, h2.events.DataReceived):
                response.body += event.data
            elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                response.status = int(response.headers.pop(":status", 0))
                return response
        stream.sendall(connection.data_to_send())
    return response
