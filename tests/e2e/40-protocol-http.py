# SPDX-License-Identifier: Apache-2.0
"""OTLP/HTTP: the receiver's responses beside the Go collector's. The rows name differences."""

import gzip
import re
import socket

from google.rpc.status_pb2 import Status
from support import case, client, compare, otlp
from support.compare import Question
from support.ports import free_port

LIMIT = 65536
NOT_ALLOWED = "405 method not allowed, supported: [POST]"
UNSUPPORTED = "415 unsupported media type, supported: [application/json, application/x-protobuf]"
NO_PAGE = "404 page not found"
SPANS = otlp.traces(3).SerializeToString()
TYPE = {"Content-Type": client.PROTOBUF}
GZIP = {**TYPE, "Content-Encoding": "gzip"}


def outcome(response):
    """Status, media type, and the body's meaning: an rpc.Status code, a string, or success."""
    media = response.headers.get("content-type", "")
    if response.status == 200:
        message = otlp.RESPONSE.FromString(response.body)
        return (200, media, message.partial_success.rejected_spans)
    if media == client.PROTOBUF:
        return (response.status, media, Status.FromString(response.body).code)
    return (response.status, media.split(";")[0], response.body.decode().strip())


def ask(method="POST", path="/v1/traces", headers=None, body=SPANS):
    fields = TYPE if headers is None else headers
    return lambda server: outcome(client.request(server.http, method, path, body, fields))


def ask_redirect(path):
    def asking(server):
        response = client.request(server.http, "POST", path, SPANS, TYPE)
        return response.status, response.headers.get("location")

    return asking


def ask_raw(*chunks):
    """Bytes on one connection, which the last request closes: the statuses that come back."""

    def asking(server):
        with socket.create_connection(("127.0.0.1", server.http), client.TIMEOUT_S) as connection:
            for chunk in chunks:
                connection.sendall(chunk)
            response = b"".join(iter(lambda: connection.recv(65536), b""))
        return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3})", response)]

    return asking


def head(*lines, version="1.1"):
    """A POST head; no Host unless a line says so."""
    fixed = f"POST /v1/traces HTTP/{version}\r\nContent-Type: {client.PROTOBUF}\r\n"
    return (fixed + "".join(f"{line}\r\n" for line in lines) + "\r\n").encode()


def typed(value):
    return {"Content-Type": value}


def encoded(value):
    return {**TYPE, "Content-Encoding": value}


OK = (200, client.PROTOBUF, 0)
BAD = (400, client.PROTOBUF, 3)


class HttpTable(compare.SideBySide):
    def start(self, executable):
        http = free_port()
        config = (
            "receivers:\n  otlp:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{http}\n        max_request_body_size: {LIMIT}\n"
            "exporters:\n  nop:\nservice:\n" + case.QUIET + "  pipelines:\n"
            "    traces:\n      receivers: [otlp]\n      exporters: [nop]\n"
        )
        server = self.server(config, executable=executable).wait_until_ready()
        server.http = http
        return server

    def questions(self):
        return (
            self.requests()
            + self.types()
            + self.paths()
            + self.encodings()
            + self.bodies()
            + self.http1()
        )

    def requests(self):
        text = "text/plain"
        return [
            Question("three spans", ask(), OK),
            Question("an empty protobuf body", ask(body=b""), OK),
            Question("GET", ask("GET", body=b""), (405, text, NOT_ALLOWED)),
            Question("PUT", ask("PUT"), (405, text, NOT_ALLOWED)),
            Question("PATCH", ask("PATCH"), (405, text, NOT_ALLOWED)),
            Question(
                "GET without type", ask("GET", headers={}, body=b""), (405, text, NOT_ALLOWED)
            ),
        ]

    def types(self):
        def refused(name, headers):
            return Question(name, ask(headers=headers), (415, "text/plain", UNSUPPORTED))

        return [
            refused("no content type", {}),
            refused("text/plain", typed("text/plain")),
            refused("application/protobuf", typed("application/protobuf")),
            refused("application/grpc", typed("application/grpc")),
            refused("a broken parameter", typed("application/x-protobuf; a")),
            Question("upper case", ask(headers=typed("APPLICATION/X-PROTOBUF")), OK),
            Question("a parameter", ask(headers=typed("application/x-protobuf; a=b")), OK),
            Question("a trailing semicolon", ask(headers=typed("application/x-protobuf;")), OK),
        ]

    def paths(self):
        missing = (404, "text/plain", NO_PAGE)
        return [
            Question("an unknown path", ask(path="/v1/spans"), missing),
            Question("a trailing slash", ask(path="/v1/traces/"), missing),
            Question("the root", ask(path="/"), missing),
            Question("GET of an unknown path", ask("GET", path="/x", body=b""), missing),
            Question("a signal without a pipeline", ask(path="/v1/metrics"), missing),
            Question("a query", ask(path="/v1/traces?a=b"), OK),
            Question("percent-encoded", ask(path="/v1/%74races"), OK),
            Question("an escaped slash", ask(path="/v1%2Ftraces"), missing),
            Question("an escaped dot", ask(path="/v1/%2e/traces"), missing),
            Question("an absolute target", ask(path="http://host/v1/traces"), OK),
            Question("two slashes first", ask_redirect("//v1/traces"), (307, "/v1/traces")),
            Question("two slashes inside", ask_redirect("/v1//traces"), (307, "/v1/traces")),
        ]

    def encodings(self):
        packed = gzip.compress(SPANS)
        unknown = BAD
        both = {"Content-Type": "text/plain", "Content-Encoding": "sdch"}
        unencodable = (
            500,
            "application/json",
            '{"code": 13, "message": "failed to marshal error message"}',
        )
        return [
            Question("gzip", ask(headers=GZIP, body=packed), OK),
            Question("two gzip members", ask(headers=GZIP, body=gzip.compress(b"") + packed), OK),
            Question("gzip that is none", ask(headers=GZIP), BAD),
            Question("gzip cut short", ask(headers=GZIP, body=packed[:-9]), BAD),
            Question("gzip with a wrong sum", ask(headers=GZIP, body=packed[:-8] + b"x" * 8), BAD),
            Question("bytes after gzip", ask(headers=GZIP, body=packed + b"more"), BAD),
            Question("an empty gzip body", ask(headers=GZIP, body=b""), BAD),
            Question("identity", ask(headers=encoded("identity")), unknown),
            Question("x-gzip", ask(headers=encoded("x-gzip"), body=packed), unknown),
            Question("GZIP", ask(headers=encoded("GZIP"), body=packed), unknown),
            Question("a list of codecs", ask(headers=encoded("gzip, gzip"), body=packed), unknown),
            Question("an unknown codec and an unknown type", ask(headers=both), unencodable),
            Question("an unknown codec", ask(headers=encoded("sdch")), unknown),
            Question(
                "an unknown codec and path", ask(path="/x", headers=encoded("sdch")), unknown
            ),
        ]

    def http1(self):
        size = f"Content-Length: {len(SPANS)}"
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(SPANS), SPANS)
        close, host = "Connection: close", "Host: a"
        kept = head(host, size) + SPANS
        last = head(host, size, close) + SPANS
        expecting = head(host, size, close, "Expect: 100-continue")
        both = head(host, close, "Content-Length: 5", "Transfer-Encoding: chunked")
        why = "both lengths in one request are how requests are smuggled"
        return [
            Question(
                "chunked", ask_raw(head(host, close, "Transfer-Encoding: chunked") + chunked), [200]
            ),
            Question("two requests in one go", ask_raw(kept + last), [200, 200]),
            Question("byte by byte", ask_raw(*(bytes([byte]) for byte in last)), [200]),
            Question("HTTP/1.0", ask_raw(head(size, version="1.0") + SPANS), [200]),
            Question("Expect: 100-continue", ask_raw(expecting, SPANS), [100, 200]),
            Question("no Host", ask_raw(head(size, close) + SPANS), [400]),
            Question("two Hosts", ask_raw(head(host, host, size, close) + SPANS), [400]),
            Question(
                "a space before the colon", ask_raw(head(host, size, close, "A : b") + SPANS), [400]
            ),
            Question(
                "two lengths that differ",
                ask_raw(head(host, size, "Content-Length: 1", close) + SPANS),
                [400],
            ),
            Question("length and chunked", ask_raw(both + chunked), [400], [200], why),
            Question("not HTTP", ask_raw(b"hello\r\n\r\n"), [400]),
        ]

    def bodies(self):
        too_large = (413, client.PROTOBUF, 3)
        bomb = gzip.compress(b"\x0a\x00" * LIMIT)
        why = "OTLP 1.11 asks for 413, which no client retries either"
        return [
            Question("cut short", ask(body=SPANS[:-1]), BAD),
            Question("not protobuf", ask(body=b"\xff\xff\xff\xff"), BAD),
            Question("a field of the wrong wire type", ask(body=b"\x08\x01"), BAD),
            Question("field number 0", ask(body=b"\x00\x01"), BAD),
            Question("a group", ask(body=b"\x0b\x0c"), BAD),
            Question("an unknown field", ask(body=SPANS + b"\xfa\x3e\x01x"), OK),
            Question("an empty ResourceSpans", ask(body=b"\x0a\x00"), OK),
            Question("larger than the limit", ask(body=b"\x0a\x00" * LIMIT), too_large, BAD, why),
            Question("larger once inflated", ask(headers=GZIP, body=bomb), too_large, BAD, why),
        ]


if __name__ == "__main__":
    case.main()
