# SPDX-License-Identifier: Apache-2.0
"""Responses of back-ends, beside the Go collector: retried, dropped, or passed to the client."""

from google.rpc.status_pb2 import Status
from support import case, client, compare, otlp
from support.compare import Question
from support.ports import free_port
from support.sink import Reply

BODY = otlp.traces(2).SerializeToString()


class Passed(compare.SideBySide):
    """Queue and retries off: the back-end's response is the client's, over HTTP and gRPC."""

    def start(self, executable):
        back_end, grpc, http = self.sink(), free_port(), free_port()
        exporter = case.DIRECT + case.NO_RETRY
        config = case.otlp_config(grpc, http, back_end.url, exporter=exporter)
        server = self.server(config, executable=executable).wait_until_ready()
        server.back_end, server.grpc, server.http = back_end, grpc, http
        return server

    def questions(self):
        rows = [
            (200, 200, "OK"),
            (202, 200, "OK"),
            (400, 400, "INVALID_ARGUMENT"),
            (401, 401, "UNAUTHENTICATED"),
            (403, 403, "PERMISSION_DENIED"),
            (404, 404, "UNIMPLEMENTED"),
            (409, 500, "UNKNOWN"),
            (413, 500, "UNKNOWN"),
            (418, 500, "UNKNOWN"),
            (429, 429, "RESOURCE_EXHAUSTED"),
            (500, 500, "UNKNOWN"),
            (501, 500, "UNKNOWN"),
            (502, 503, "UNAVAILABLE"),
            (503, 503, "UNAVAILABLE"),
            (504, 503, "UNAVAILABLE"),
        ]
        return [
            question
            for status, http, grpc in rows
            for question in (
                Question(f"{status} over HTTP", ask_http(status), http),
                Question(f"{status} over gRPC", ask_grpc(status), grpc),
            )
        ]


def ask_http(status):
    def asking(server):
        server.back_end.respond_with(Reply(status))
        response = client.post(server.http, "traces", BODY)
        if response.status != 200:
            Status.FromString(response.body)
        return response.status

    return asking


def ask_grpc(status):
    def asking(server):
        server.back_end.respond_with(Reply(status))
        connection = client.GrpcClient(server.grpc)
        try:
            return connection.export("traces", BODY)[0]
        finally:
            connection.close()

    return asking


class Retried(case.Case):
    QUICK = (
        "    retry_on_failure:\n      initial_interval: 50ms\n      max_interval: 100ms\n"
        "      max_elapsed_time: {elapsed}\n"
    )

    def start(self, script=(), elapsed="60s", **options):
        self.back_end = self.sink(script=script, **options)
        self.http = free_port()
        exporter = case.UNCOMPRESSED + self.QUICK.format(elapsed=elapsed)
        return self.daemon(
            case.otlp_config(free_port(), self.http, self.back_end.url, exporter=exporter)
        )

    def send(self):
        self.assertEqual(client.post(self.http, "traces", BODY).status, 200)

    def statuses(self, count):
        arrived = self.back_end.wait_for_requests(count)
        for request in arrived:
            self.assertEqual(otlp.spans_of([request.payload]), otlp.spans_of([BODY]))
        return [request.status for request in arrived]

    def test_retryable_failures_are_retried_with_the_same_bytes(self):
        daemon = self.start([Reply(429), Reply(502), Reply(503), Reply(504)])
        self.send()
        self.assertEqual(self.statuses(5), [429, 502, 503, 504, 200])
        self.assertIn("Exporting failed. Will retry the request after interval.", daemon.log())

    def test_permanent_failures_are_dropped_and_logged(self):
        for status in (400, 401, 403, 404, 413, 500, 501):
            with self.subTest(status):
                daemon = self.start([Reply(status)])
                self.send()
                line = daemon.wait_for_line("Exporting failed. Dropping data.")
                self.assertIn('"dropped_items": 2', line)
                self.assertEqual(self.statuses(1), [status])

    def test_retry_after_is_waited_for(self):
        daemon = self.start([Reply(503, {"Retry-After": "1"})])
        self.send()
        line = daemon.wait_for_line("Will retry the request after interval")
        self.assertRegex(line, r'"interval": "1(\.\d+)?s"')
        self.assertEqual(self.statuses(2), [503, 200])

    def test_retries_end_with_the_elapsed_time(self):
        daemon = self.start(elapsed="300ms", otherwise=Reply(503))
        self.send()
        daemon.wait_for_line("Exporting failed. Dropping data.")
        self.assertGreaterEqual(len(self.back_end.requests), 2)

    def test_a_success_with_an_odd_body_is_a_success(self):
        daemon = self.start([Reply(200, None, b"not protobuf"), Reply(200, None, b"x" * 70000)])
        self.send()
        self.send()
        self.assertEqual(self.statuses(2), [200, 200])
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(len(self.back_end.requests), 2)

    def test_redirects_keep_method_and_body(self):
        for status in (301, 302, 303, 307, 308):
            with self.subTest(status):
                self.start(by_path={"/v1/traces": Reply(status, {"Location": "/elsewhere"})})
                self.send()
                arrived = self.back_end.wait(lambda seen: seen and seen[-1].path == "/elsewhere")
                self.assertEqual(arrived[-1].status, 200)
                self.assertEqual(otlp.spans_of([arrived[-1].payload]), otlp.spans_of([BODY]))

    def test_a_redirect_to_itself_ends(self):
        daemon = self.start(by_path={"/v1/traces": Reply(307, {"Location": "/v1/traces"})})
        self.send()
        daemon.wait_for_line("Exporting failed. Dropping data.")
        self.assertLess(len(self.back_end.requests), 50)

    def test_a_back_end_that_is_not_there_yet_gets_everything_later(self):
        port = free_port()
        self.http = free_port()
        exporter = case.UNCOMPRESSED + self.QUICK.format(elapsed="60s")
        daemon = self.daemon(
            case.otlp_config(free_port(), self.http, f"http://127.0.0.1:{port}", exporter=exporter)
        )
        self.send()
        daemon.wait_for_line("Will retry the request after interval")
        self.back_end = self.sink(port=port)
        self.assertEqual(self.statuses(1), [200])

    def test_a_dead_back_end_does_not_hold_up_a_living_one(self):
        living, http = self.sink(), free_port()
        self.daemon(
            "receivers:\n  otlp:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{http}\n"
            f"exporters:\n  otlphttp/living:\n    endpoint: {living.url}\n"
            f"  otlphttp/dead:\n    endpoint: http://127.0.0.1:{free_port()}\n"
            + self.QUICK.format(elapsed="1s")
            + f"service:\n{case.QUIET}  pipelines:\n    traces:\n      receivers: [otlp]\n"
            "      exporters: [otlphttp/dead, otlphttp/living]\n"
        )
        for _ in range(50):
            self.assertEqual(client.post(http, "traces", BODY).status, 200)
        living.wait_for_requests(50)


if __name__ == "__main__":
    case.main()
