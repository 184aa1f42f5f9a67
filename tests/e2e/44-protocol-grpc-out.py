# SPDX-License-Identifier: Apache-2.0
"""The otlp_grpc exporter: to the Go collector, to a strict back-end, and beside the Go collector's."""

import base64
import itertools
import tempfile
import threading

import grpc
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2

from support import case, certificates, client, otlp, peers, process
from support.grpc_sink import GrpcSink, retry_info, status_details
from support.ports import free_port

PLAIN = "    tls:\n      insecure: true\n"
FAST_RETRY = (
    "    retry_on_failure:\n      initial_interval: 50ms\n      max_interval: 50ms\n"
    "      max_elapsed_time: 400ms\n"
)
# How long an exporter that means to try again would need at most.
RETRY_WITHIN_S = 3
CODES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


def config(http, backend, exporter, name="otlp_grpc"):
    """otlp over HTTP in, otlp_grpc out, for all three signals."""
    pipelines = "".join(
        f"    {signal}:\n      receivers: [otlp]\n      exporters: [{name}]\n"
        for signal in case.SIGNALS
    )
    return (
        f"receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: 127.0.0.1:{http}\n"
        f"exporters:\n  {name}:\n    endpoint: {backend}\n{exporter}"
        f"service:\n{case.QUIET}  pipelines:\n{pipelines}"
    )


class GrpcCase(case.Case):
    def grpc_sink(self, port=None, **options):
        sink = GrpcSink(port or free_port(), **options)
        self.addCleanup(sink.close)
        return sink

    def exporter(self, backend, options=PLAIN, **named):
        """A daemon that sends there; returns its HTTP port."""
        http = free_port()
        self.daemon(config(http, backend, options, **named))
        return http


class Secrets(GrpcCase):
    """Secrets of requests show up nowhere, even when the back-end repeats them."""

    SECRETS = ("canary-token", "canary-key", "canary-binary", "Y2FuYXJ5LWJpbmFyeQ", "canary-basic")
    OPTIONS = (
        "    sending_queue: {enabled: false}\n    retry_on_failure: {enabled: false}\n"
        "    headers:\n      authorization: Bearer canary-token\n      x-api-key: canary-key\n"
        "      x-key-bin: canary-binary\n"
        "      proxy-authorization: Basic dXNlcjpjYW5hcnktYmFzaWM=\n"
    )

    def repeated(self):
        """All metadata of the call, and what it decodes to."""
        rows = self.back_end.metadata.items()
        values = (value.decode() if isinstance(value, bytes) else value for _, value in rows)
        return " ".join((*values, *self.SECRETS))

    def refuse(self, signal):
        if signal == "logs":
            return None
        text = self.repeated()
        details = status_details(3, text, error_details_pb2.ErrorInfo(reason=text))
        code = "INVALID_ARGUMENT" if signal == "traces" else "UNAVAILABLE"
        return (grpc.StatusCode[code], text, details)

    def test_no_log_response_or_metric_has_one(self):
        metrics = free_port()
        http = free_port()
        self.back_end = self.grpc_sink(refuse=self.refuse, warn=self.repeated)
        telemetry = case.metrics_service(metrics) + "    logs: {level: debug}\n"
        text = config(http, f"127.0.0.1:{self.back_end.port}", PLAIN + self.OPTIONS)
        daemon = self.daemon(text.replace(case.QUIET, telemetry))
        for signal, status in (("traces", 400), ("metrics", 503), ("logs", 200)):
            response = client.post(http, signal, otlp.sample(signal, 5).SerializeToString())
            self.assertEqual(response.status, status)
            shown = daemon.log() + repr(response) + str(client.get(metrics, "/metrics").body)
            for secret in self.SECRETS:
                self.assertNotIn(secret, shown, signal)
        self.assertEqual(self.back_end.metadata["x-key-bin"], b"canary-binary")
        self.assertIn("Partial success response", daemon.log())
        self.assertIn("[REDACTED]", daemon.log())

    def test_no_error_repeats_what_stands_in_an_endpoint(self):
        for endpoint in (
            "http://user:canary-key@localhost:4317",
            "https://canary-key@localhost:4317",
            "user:canary-key@localhost:4317",
            "localhost:4317/?key=canary-key",
            "localhost:4317#canary-key",
        ):
            text = config(free_port(), f"'{endpoint}'", PLAIN)
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(text)
                file.flush()
                done = process.run("validate", "--config", file.name)
            self.assertEqual(done.returncode, 1)
            self.assertIn("otlp_grpc::endpoint", done.stderr)
            self.assertNotIn("canary-key", done.stderr)


class ToTheGoCollector(GrpcCase):
    def check(self, options, tls="", host="127.0.0.1"):
        """client -> spanflame -> gRPC -> Go collector -> back-end, every signal."""
        sink = self.sink()
        port = free_port()
        pipelines = "".join(
            f"    {signal}: {{receivers: [otlp], exporters: [otlphttp]}}\n"
            for signal in case.SIGNALS
        )
        self.server(
            f"receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: 127.0.0.1:{port}\n"
            f"{tls}exporters:\n  otlphttp:\n    endpoint: {sink.url}\n"
            f"service:\n{case.QUIET}  pipelines:\n{pipelines}",
            executable=peers.otelcol(),
        ).wait_until_ready()
        http = self.exporter(f"{host}:{port}", options)
        sent = {}
        for signal in case.SIGNALS:
            body = otlp.sample(signal, 50).SerializeToString()
            self.assertEqual(client.post(http, signal, body).status, 200)
            sent[signal] = with_scopes(signal, body)
        sink.wait_for_requests(len(case.SIGNALS))
        for signal in case.SIGNALS:
            [request] = sink.accepted(signal)
            self.assertEqual(with_scopes(signal, request.payload), sent[signal])

    def test_every_compression(self):
        for codec in ("gzip", "snappy", "zstd", "none"):
            with self.subTest(codec):
                self.check(f"    compression: {codec}\n{PLAIN}")

    def test_tls(self):
        made = certificates.Certificates(self)
        self.check(
            f"    tls:\n      ca_file: {made.path('ca.pem')}\n",
            "        tls:\n"
            f"          cert_file: {made.path('server.pem')}\n"
            f"          key_file: {made.path('server.key')}\n",
            host="localhost",
        )

    def test_tls_with_client_certificates(self):
        made = certificates.Certificates(self)
        self.check(
            f"    tls:\n      ca_file: {made.path('ca.pem')}\n"
            f"      cert_file: {made.path('client.pem')}\n"
            f"      key_file: {made.path('client.key')}\n",
            "        tls:\n"
            f"          cert_file: {made.path('server.pem')}\n"
            f"          key_file: {made.path('server.key')}\n"
            f"          client_ca_file: {made.path('ca.pem')}\n",
        )

    def test_a_server_in_cleartext_is_named_in_the_log(self):
        sink = self.grpc_sink()
        http = free_port()
        daemon = self.daemon(config(http, f"127.0.0.1:{sink.port}", FAST_RETRY))
        body = otlp.traces(1).SerializeToString()
        self.assertEqual(client.post(http, "traces", body).status, 200)
        daemon.wait_for_line(r"Exporting failed.*set tls: \{insecure: true\}")


class ToAStrictBackEnd(GrpcCase):
    def test_metadata(self):
        sink = self.grpc_sink()
        http = self.exporter(
            f"http://127.0.0.1:{sink.port}",
            PLAIN + case.DIRECT + "    authority: tempo\n    user_agent: mine/1\n"
            "    headers:\n      X-Scope-OrgID: tenant\n      key-bin: bytes\n",
        )
        body = otlp.traces(1).SerializeToString()
        self.assertEqual(client.post(http, "traces", body).status, 200)
        self.assertEqual(sink.metadata["x-scope-orgid"], "tenant")
        self.assertEqual(sink.metadata["key-bin"], b"bytes")
        self.assertEqual(sink.metadata["user-agent"], "mine/1")

    def test_one_stream_at_a_time(self):
        all_are_posted = threading.Event()
        sink = self.grpc_sink(
            refuse=lambda signal: None if all_are_posted.wait(client.TIMEOUT_S) else "never posted",
            options=(("grpc.max_concurrent_streams", 1),),
        )
        http = self.exporter(f"127.0.0.1:{sink.port}")
        sent = [otlp.traces(2).SerializeToString() for _ in range(40)]
        for body in sent:
            self.assertEqual(client.post(http, "traces", body).status, 200)
        all_are_posted.set()
        sink.wait(lambda sink: len(sink.requests) == len(sent))
        self.assertEqual(sink.at_once, 1)
        self.assertEqual(otlp.spans_of(sink.bodies("traces")), otlp.spans_of(sent))

    def test_a_back_end_that_comes_and_goes_costs_nothing(self):
        port = free_port()
        retry = FAST_RETRY.replace("max_elapsed_time: 400ms", "max_elapsed_time: 0")
        http = self.exporter(f"127.0.0.1:{port}", PLAIN + retry)
        sent, arrived = [], []
        for grace in (None, 0.2, None):
            sink = self.grpc_sink(port)
            for _ in range(30):
                sent.append(otlp.traces(3).SerializeToString())
                self.assertEqual(client.post(http, "traces", sent[-1]).status, 200)
            sink.wait(lambda sink: len(sink.requests) >= 10)
            sink.close(grace)
            arrived += sink.bodies("traces")
        sink = self.grpc_sink(port)
        sink.wait(lambda sink: _ids(arrived + sink.bodies("traces")) >= _ids(sent))


# A back-end's code, and the HTTP status for the receiver's client, as in the Go collector.
HTTP_STATUS = {code: 500 for code in CODES} | {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.UNIMPLEMENTED: 404,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.CANCELLED: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 503,
    grpc.StatusCode.ABORTED: 503,
    grpc.StatusCode.OUT_OF_RANGE: 503,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DATA_LOSS: 503,
}
RETRYABLE = {
    getattr(grpc.StatusCode, name)
    for name in "CANCELLED DEADLINE_EXCEEDED ABORTED OUT_OF_RANGE UNAVAILABLE DATA_LOSS".split()
}


class BesideTheGoCollector(GrpcCase):
    """The same back-end behind both: what is retried, and what the client gets."""

    def ask(self, executable, options, failure):
        """Attempts, and the client's status and Retry-After."""
        sink = self.grpc_sink(refuse=lambda signal: failure)
        http = free_port()
        server = self.server(
            config(http, f"127.0.0.1:{sink.port}", PLAIN + case.DIRECT + options),
            executable=executable,
        ).wait_until_ready()
        response = client.post(http, "traces", otlp.traces(1).SerializeToString())
        server.stop()
        sink.close()
        return sink.calls, response.status, response.headers.get("retry-after")

    def test_every_status_without_retries(self):
        for executable in peers.systems():
            for code in CODES:
                with self.subTest(code.name, executable=executable):
                    seen = self.ask(executable, case.NO_RETRY, (code, "words", ()))
                    self.assertEqual(seen[:2], (1, HTTP_STATUS[code]))

    def test_every_status_with_retries(self):
        for executable in peers.systems():
            for code in CODES:
                with self.subTest(code.name, executable=executable):
                    calls, *_ = self.ask(executable, FAST_RETRY, (code, "words", ()))
                    self.assertEqual(calls > 1, code in RETRYABLE)

    def test_retry_info(self):
        """Below a second the Go collector sends "Retry-After: 0"; spanflame rounds up."""
        codes = grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE
        for executable in peers.systems():
            for code, seconds in itertools.product(codes, (0, 0.1, 1.9)):
                with self.subTest(f"{code.name} {seconds}", executable=executable):
                    info = retry_info(code.value[0], "words", seconds)
                    seen = self.ask(executable, case.NO_RETRY, (code, "words", info))
                    self.assertEqual(seen[:2], (1, HTTP_STATUS[code]))
                    if executable is None or seconds >= 1:
                        self.assertEqual(seen[2], "1" if seconds else None)
                    calls, *_ = self.ask(executable, FAST_RETRY, (code, "words", info))
                    self.assertEqual(calls > 1, seconds < 1)

    def test_details_of_every_kind_reach_the_client(self):
        """Over gRPC, and over HTTP in protobuf; with the hint to wait also as Retry-After."""
        violation = error_details_pb2.BadRequest.FieldViolation(field="spans", description="none")
        bad = error_details_pb2.BadRequest(field_violations=[violation])
        why = error_details_pb2.ErrorInfo(reason="QUOTA", domain="test", metadata={"a": "b" * 500})
        wait = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=7))
        for code, details in (
            (grpc.StatusCode.INVALID_ARGUMENT, [bad]),
            (grpc.StatusCode.INVALID_ARGUMENT, [wait]),
            (grpc.StatusCode.UNAVAILABLE, [why]),
            (grpc.StatusCode.UNAVAILABLE, [wait, why, bad]),
        ):
            with self.subTest(f"{code.name} {[type(detail).__name__ for detail in details]}"):
                trailers = status_details(code.value[0], "words", *details)
                found = self.details(None, (code, "words", trailers))
                self.assertEqual(found[0], found[1])
                self.assertEqual((found[0][0], len(found[0][1])), (code.value[0], len(details)))
                go = self.details(peers.otelcol(), (code, "words", trailers))
                self.assertEqual(found, go)

    def details(self, executable, failure):
        """Code and details by gRPC, and by HTTP with its Retry-After."""
        sink = self.grpc_sink(refuse=lambda signal: failure)
        http, port = free_port(), free_port()
        text = config(http, f"127.0.0.1:{sink.port}", PLAIN + case.DIRECT + case.NO_RETRY)
        text = text.replace("      http:", f"      grpc: {{endpoint: '127.0.0.1:{port}'}}\n      http:")
        server = self.server(text, executable=executable).wait_until_ready()
        body = otlp.traces(1).SerializeToString()
        fields = client.grpc_by_hand(port, client.grpc_frame(body)).headers
        coded = fields["grpc-status-details-bin"]
        plain = client.post(http, "traces", body)
        statuses = [
            status_pb2.Status.FromString(found)
            for found in (base64.b64decode(coded + "=" * (-len(coded) % 4)), plain.body)
        ]
        server.stop()
        sink.close()
        pairs = [(status.code, list(status.details)) for status in statuses]
        return (*pairs, plain.headers.get("retry-after"))


def with_scopes(signal, body):
    """The request with the empty scopes and resources that the Go collector writes."""
    request = otlp.decode(signal, body)
    for resource in getattr(request, otlp.RESOURCES[signal]):
        resource.resource.SetInParent()
        for scope in getattr(resource, otlp.RESOURCES[signal].replace("resource", "scope")):
            scope.scope.SetInParent()
    return request


def _ids(bodies):
    """Span ids; duplicates do not matter here."""
    return {span_id for body in bodies for span_id in otlp.spans_of([body])}


if __name__ == "__main__":
    case.main()
