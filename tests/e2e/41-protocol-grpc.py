# SPDX-License-Identifier: Apache-2.0
"""OTLP/gRPC: the receiver's responses beside the Go collector's. The rows name differences."""

import gzip

from support import case, client, compare, otlp
from support.client import grpc_frame
from support.compare import Question
from support.ports import free_port

LIMIT_MIB = 1
SPANS = otlp.traces(3).SerializeToString()
MESSAGE = grpc_frame(SPANS)
PACKED = gzip.compress(SPANS)
TRACES = client.SERVICES["traces"]


def ask(body=MESSAGE, method="POST", path=TRACES, **headers):
    """HTTP status and grpc-status of a hand-made exchange; header names with _ for -."""

    def asking(server):
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        response = client.grpc_by_hand(server.grpc, body, method, path, fields)
        return response.status, response.headers.get("grpc-status")

    return asking


def ask_without_message(server):
    """HEADERS that end the stream: no message, not even a prefix."""
    try:
        return ask(None)(server)
    except TimeoutError:
        return "no response"


def ask_client(signal, message, **options):
    """What a real gRPC client (grpcio) makes of the response."""

    def asking(server):
        connection = client.GrpcClient(server.grpc)
        try:
            return connection.export(signal, message, **options)[0]
        finally:
            connection.close()

    return asking


def ask_text(method):
    def asking(server):
        connection = client.GrpcClient(server.grpc)
        try:
            return connection.export("traces", SPANS, method=method)
        finally:
            connection.close()

    return asking


class GrpcTable(compare.SideBySide):
    def start(self, executable):
        grpc = free_port()
        config = (
            "receivers:\n  otlp:\n    protocols:\n      grpc:\n"
            f"        endpoint: 127.0.0.1:{grpc}\n        max_recv_msg_size_mib: {LIMIT_MIB}\n"
            "exporters:\n  nop:\nservice:\n" + case.QUIET + "  pipelines:\n"
            "    traces:\n      receivers: [otlp]\n      exporters: [nop]\n"
            "    logs:\n      receivers: [otlp]\n      exporters: [nop]\n"
        )
        server = self.server(config, executable=executable).wait_until_ready()
        server.grpc = grpc
        return server

    def questions(self):
        return self.clients() + self.headers() + self.encodings() + self.messages()

    def clients(self):
        bad, why = "INVALID_ARGUMENT", "OTLP's status for bad data; neither is retried"
        large = otlp.traces(2000, text_bytes=600).SerializeToString()
        return [
            Question("spans", ask_client("traces", SPANS), "OK"),
            Question("spans, gzip", ask_client("traces", SPANS, compressed=True), "OK"),
            Question("an empty request", ask_client("traces", b""), "OK"),
            Question("log records", ask_client("logs", otlp.logs(3).SerializeToString()), "OK"),
            Question("a signal without a pipeline", ask_client("metrics", b""), "UNIMPLEMENTED"),
            Question("not protobuf", ask_client("traces", b"\xff\xff\xff"), bad, "INTERNAL", why),
            Question("cut protobuf", ask_client("traces", SPANS[:-1]), bad, "INTERNAL", why),
            Question("larger than the limit", ask_client("traces", large), "RESOURCE_EXHAUSTED"),
            Question(
                "larger once inflated",
                ask_client("traces", large, compressed=True),
                "RESOURCE_EXHAUSTED",
            ),
            Question(
                "an unknown service",
                ask_text("/a.B/Export"),
                ("UNIMPLEMENTED", "unknown service a.B"),
            ),
            Question(
                "an unknown method",
                ask_text(TRACES.replace("Export", "Import")),
                (
                    "UNIMPLEMENTED",
                    "unknown method Import for service "
                    "opentelemetry.proto.collector.trace.v1.TraceService",
                ),
            ),
        ]

    def headers(self):
        ok = (200, "0")
        return [
            Question("by hand", ask(), ok),
            Question("GET", ask(None, method="GET"), (405, "13")),
            Question("text/plain", ask(content_type="text/plain"), (415, "3")),
            Question("a subtype", ask(content_type="application/grpc+json"), ok),
            Question(
                "another type that begins so", ask(content_type="application/grpcx"), (415, "3")
            ),
            Question("without te", ask(te=None), ok),
            Question("a bad timeout", ask(grpc_timeout="1x"), (400, "13")),
            Question("a timeout with too many digits", ask(grpc_timeout="123456789S"), (400, "13")),
            Question("a timeout that is over", ask(grpc_timeout="0S"), (200, "4")),
            Question("a long timeout", ask(grpc_timeout="99999999H"), ok),
            Question("bad binary metadata", ask(a_bin="!"), (400, "13")),
        ]

    def encodings(self):
        compressed = grpc_frame(PACKED, flag=1)
        return [
            Question("gzip", ask(compressed, grpc_encoding="gzip"), (200, "0")),
            Question("announced but not used", ask(grpc_encoding="gzip"), (200, "0")),
            Question("identity", ask(grpc_encoding="identity"), (200, "0")),
            Question("an unknown encoding", ask(compressed, grpc_encoding="br"), (200, "12")),
            Question("unknown, not used", ask(grpc_encoding="br"), (200, "12")),
            Question("compressed without a name", ask(compressed), (200, "13")),
            Question(
                "compressed by identity", ask(compressed, grpc_encoding="identity"), (200, "13")
            ),
            Question(
                "gzip that is none", ask(grpc_frame(SPANS, 1), grpc_encoding="gzip"), (200, "13")
            ),
            Question("flag 2", ask(grpc_frame(SPANS, 2)), (200, "13")),
        ]

    def messages(self):
        return [
            Question(
                "no message",
                ask_without_message,
                (200, "13"),
                "no response",
                "without a response the client would wait until its own deadline",
            ),
            Question("cut in the prefix", ask(MESSAGE[:3]), (200, "2")),
            Question("cut in the message", ask(MESSAGE[:-1]), (200, "2")),
            Question("too large by its prefix", ask(grpc_frame(b"", size=2**31)), (200, "8")),
            Question("two messages", ask(MESSAGE + MESSAGE), (200, "0")),
            Question("bytes behind the message", ask(MESSAGE + b"xy"), (200, "0")),
        ]


if __name__ == "__main__":
    case.main()
