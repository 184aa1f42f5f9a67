# SPDX-License-Identifier: Apache-2.0
"""Authentication of clients: basicauth, bearertokenauth and CORS, beside the Go collector."""

import base64
import os
import tempfile
import time

from google.rpc.status_pb2 import Status
from support import case, certificates, client, compare, otlp, peers, process
from support.client import grpc_by_hand, grpc_frame
from support.compare import Question
from support.ports import free_port

SPANS = otlp.traces(3).SerializeToString()
# u:hello three times over
HTPASSWD = (
    "u:$2b$04$abcdefghijklmnopqrstuuwHJMEGjfAzmL1lWmUmlphguIbWfjYey\n"
    "v:{SHA}qvTGHdzF6KLavt4PO0gs2a6pQ00=\n"
    "w:$apr1$abcdefgh$cy3DSYyOwfhsyu7QOMQzd.\n"
)
MISMATCH = "provided authorization does not match expected scheme or token"
JSON = "application/json"
PAGE = "http://app.example.com"
FORBIDDEN = "http://example.org"
# Not of http://*.example.com: another end, another beginning, all of them longer than the pattern.
FOREIGN = (
    "http://evil.example.org",
    "http://example.com.evil.org",
    "http://app.example.com.evil.org",
    "http://app.example.com:8080",
    "http://app-example.com",
    "https://app.example.com",
    "evil+http://app.example.com",
)


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def ask(authorization=None, path="/v1/traces", media=client.PROTOBUF, headers=None, method="POST"):
    """The status, the media type, and the error message."""

    def asking(server):
        fields = {**({"Content-Type": media} if media else {}), **(headers or {})}
        if authorization is not None:
            fields["Authorization"] = authorization
        response = client.request(server.http, method, path, SPANS, fields)
        found = response.headers.get("content-type", "").split(";")[0]
        if response.status == 200:
            return 200, found, ""
        if found == client.PROTOBUF:
            return response.status, found, Status.FromString(response.body).message
        return response.status, found, response.body.decode().replace(": ", ":").replace(", ", ",")

    return asking


def ask_grpc(authorization=None):
    """The status code and its message."""

    def asking(server):
        headers = {"authorization": authorization} if authorization is not None else {}
        response = grpc_by_hand(server.grpc, grpc_frame(SPANS), headers=headers)
        return response.headers.get("grpc-status"), response.headers.get("grpc-message", "")

    return asking


def ask_cors(origin, method="OPTIONS", authorization=None, path="/v1/traces", asked=None):
    """The status, and the response's headers for the browser."""

    def asking(server):
        headers = {"Origin": origin} if origin else {}
        for name, value in (asked or {}).items():
            headers[f"Access-Control-Request-{name}"] = value
        if authorization:
            headers["Authorization"] = authorization
        response = client.request(server.http, method, path, b"", headers)
        said = {
            name.removeprefix("access-control-"): value
            for name, value in response.headers.items()
            if name.startswith("access-control-") or name == "vary"
        }
        return response.status, said

    return asking


class Gate(compare.SideBySide):
    """Basic over HTTP with CORS, bearer over gRPC."""

    def start(self, executable):
        grpc, http = free_port(), free_port()
        lines = "".join(f"        {line}\n" for line in HTPASSWD.splitlines())
        server = self.server(
            "extensions:\n  basicauth:\n    htpasswd:\n      inline: |\n"
            + lines
            + "  bearertokenauth:\n    tokens: [sesame, simsim]\n"
            "receivers:\n  otlp:\n    protocols:\n"
            f"      grpc:\n        endpoint: 127.0.0.1:{grpc}\n"
            "        auth:\n          authenticator: bearertokenauth\n"
            f"      http:\n        endpoint: 127.0.0.1:{http}\n"
            "        auth:\n          authenticator: basicauth\n"
            "          request_params: [Authorization, authorization]\n"
            "        response_headers:\n          X-Trace: always\n"
            "          Content-Type: text/never\n"
            "        cors:\n          allowed_origins: ['http://*.example.com', 'HTTP://other']\n"
            "          allowed_headers: [X-Trace, content-type]\n"
            "          exposed_headers: [x-trace, etag]\n          max_age: 7200\n"
            "exporters:\n  nop:\nservice:\n  extensions: [basicauth, bearertokenauth]\n"
            + case.QUIET
            + "  pipelines:\n"
            "    traces:\n      receivers: [otlp]\n      exporters: [nop]\n",
            executable=executable,
        ).wait_until_ready()
        server.http, server.grpc = http, grpc
        return server

    def questions(self):
        return self.passwords() + self.order() + self.tokens() + self.browsers()

    def passwords(self):
        ok = (200, client.PROTOBUF, "")
        rows = [
            (basic("u", "hello"), ok),
            (basic("v", "hello"), ok),
            (basic("w", "hello"), ok),
            (basic("u", "hello").replace("Basic", "bASIC"), ok),
            (basic("u", "hullo"), "invalid credentials"),
            (basic("x", "hello"), "invalid credentials"),
            (None, "no basic auth provided"),
            ("", "no basic auth provided"),
            ("Basic", "invalid authorization scheme prefix"),
            ("Bearer sesame", "invalid authorization scheme prefix"),
            ("Basic !!!!", "invalid authorization format"),
            ("Basic dWhlbGxv", "invalid authorization format"),
        ]
        return [
            Question(
                f"password {value}",
                ask(value),
                seen if seen == ok else (401, client.PROTOBUF, seen),
            )
            for value, seen in rows
        ]

    def order(self):
        """Unauthenticated requests get 401, whatever else is wrong with them."""
        refused = '{"code":16,"message":"no basic auth provided"}'
        unencodable = '{"code":13,"message":"failed to marshal error message"}'
        proto = (401, client.PROTOBUF, "no basic auth provided")
        good = basic("u", "hello")
        query = "/v1/traces?Authorization=" + good.replace(" ", "+").replace("=", "%3D")
        small = query.replace("?Authorization", "?authorization")
        return [
            Question("JSON", ask(media=JSON), (401, JSON, refused)),
            Question("no type", ask(media=None), (401, JSON, refused)),
            Question("another type", ask(media="text/html"), (500, JSON, unencodable)),
            Question("no path", ask(path="/nowhere"), proto),
            Question("an unclean path", ask(path="//v1/traces"), proto),
            Question("GET", ask(method="GET"), proto),
            Question("unknown encoding", ask(headers={"Content-Encoding": "br"}), proto),
            Question(
                "no path, let in", ask(good, path="/x"), (404, "text/plain", "404 page not found\n")
            ),
            Question("credentials in the query", ask(path=query), (200, client.PROTOBUF, "")),
            Question("the query wins", ask("Basic x", path=query), (200, client.PROTOBUF, "")),
            Question("in small letters", ask(path=small), (200, client.PROTOBUF, "")),
            Question(
                "the header wins then",
                ask("Basic !", path=small),
                (401, client.PROTOBUF, "invalid authorization format"),
            ),
            Question("not decodable", ask(path="/v1/traces?Authorization=%zz"), proto),
            Question("with a semicolon", ask(good, path=query + ";x"), (200, client.PROTOBUF, "")),
        ]

    def tokens(self):
        missing = "missing or empty authorization header: Authorization"
        rows = [
            ("Bearer sesame", ("0", "")),
            ("Bearer simsim", ("0", "")),
            ("bearer sesame", ("16", MISMATCH)),
            ("Bearer sesam", ("16", MISMATCH)),
            ("sesame", ("16", MISMATCH)),
            (None, ("16", missing)),
        ]
        return [Question(f"token {value}", ask_grpc(value), seen) for value, seen in rows]

    def browsers(self):
        vary = {"vary": "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
        allowed = {
            **vary,
            "allow-origin": PAGE,
            "allow-methods": "POST",
            "allow-credentials": "true",
            "max-age": "7200",
        }
        said = {
            "vary": "Origin",
            "allow-origin": PAGE,
            "allow-credentials": "true",
            "expose-headers": "X-Trace, Etag",
        }
        post = {"Method": "POST"}
        both = {**allowed, "allow-headers": "content-type,x-trace"}
        good = basic("u", "hello")
        return [
            Question("asks first", ask_cors(PAGE, asked=post), (204, allowed)),
            Question("… on no path", ask_cors(PAGE, path="/x", asked=post), (204, allowed)),
            Question(
                "… for headers",
                ask_cors(PAGE, asked={**post, "Headers": "content-type,x-trace"}),
                (204, both),
            ),
            Question(
                "… with blanks",
                ask_cors(PAGE, asked={**post, "Headers": "content-type, x-trace"}),
                (204, {**allowed, "allow-headers": "content-type, x-trace"}),
            ),
            Question(
                "… unsorted",
                ask_cors(PAGE, asked={**post, "Headers": "x-trace,content-type"}),
                (204, vary),
            ),
            Question(
                "… in capitals", ask_cors(PAGE, asked={**post, "Headers": "X-Trace"}), (204, vary)
            ),
            Question(
                "… for another header",
                ask_cors(PAGE, asked={**post, "Headers": "accept"}),
                (204, vary),
            ),
            Question("… to PUT", ask_cors(PAGE, asked={"Method": "PUT"}), (204, vary)),
            Question("a foreign page asks", ask_cors(FORBIDDEN, asked=post), (204, vary)),
            Question("a request without an origin", ask_cors(None, asked=post), (204, vary)),
            *(
                Question(f"{origin} asks", ask_cors(origin, asked=post), (204, vary))
                for origin in FOREIGN
            ),
            *(
                Question(
                    f"{origin}, let in",
                    ask_cors(origin, method="POST", authorization=good),
                    (415, {"vary": "Origin"}),
                )
                for origin in FOREIGN
            ),
            Question(
                "a page of a page",
                ask_cors("http://a.b.example.com", asked=post),
                (204, {**allowed, "allow-origin": "http://a.b.example.com"}),
            ),
            Question(
                "capitals in origins",
                ask_cors("http://OTHER", asked=post),
                (204, {**allowed, "allow-origin": "http://OTHER"}),
            ),
            Question("OPTIONS without question", ask_cors(PAGE), (401, said)),
            Question("… let in", ask_cors(PAGE, authorization=good), (405, said)),
            Question("refused", ask_cors(PAGE, method="POST"), (401, said)),
            Question("let in", ask_cors(PAGE, method="POST", authorization=good), (415, said)),
            Question(
                "a foreign page, let in",
                ask_cors(FORBIDDEN, method="POST", authorization=good),
                (415, {"vary": "Origin"}),
            ),
            Question(
                "PUT", ask_cors(PAGE, method="PUT", authorization=good), (405, {"vary": "Origin"})
            ),
        ]


class Unnamed(case.Case):
    """An auth section without an authenticator must not disable authentication: neither starts."""

    def check(self, section, executable=None):
        server = self.server(
            "receivers:\n  otlp:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{free_port()}\n        auth: {section}\n"
            f"exporters:\n  nop:\nservice:\n{case.QUIET}  pipelines:\n"
            "    traces: {receivers: [otlp], exporters: [nop]}\n",
            executable=executable,
        )
        self.assertEqual(server.wait(), 1, section)
        return server.log()

    def test_a_section_without_a_name_is_an_error(self):
        for executable in peers.systems():
            for section in ("{}", "{authenticator: }", "{authenticator: '${env:NOT_SET}'}"):
                self.assertIn('failed to resolve authenticator ""', self.check(section, executable))
            self.assertIn("authenticator", self.check("{authenticator: ''}", executable))


SECRETS = ("canary-token", "canary-password", "canary-file", "canary-inline")


class Chain(case.Case):
    """Go collector -> spanflame -> Go collector, each asking the other for credentials."""

    def collector(self, extension, receiver="", exporter=None):
        http = free_port()
        exporters = exporter or "  nop:\n"
        self.server(
            f"extensions:\n{extension}receivers:\n  otlp:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{http}\n{receiver}exporters:\n{exporters}"
            f"service:\n  extensions: [{name_of(extension)}]\n{case.QUIET}"
            "  pipelines:\n    traces: "
            f"{{receivers: [otlp], exporters: [{name_of(exporters)}]}}\n",
            executable=peers.otelcol(),
        ).wait_until_ready()
        return http

    def test_credentials_of_both_sides(self):
        sink = self.sink()
        ask_for = "        auth:\n          authenticator: {}\n"
        behind = self.collector(
            "  bearertokenauth:\n    token: canary-token\n",
            ask_for.format("bearertokenauth"),
            f"  otlphttp:\n    endpoint: {sink.url}\n",
        )
        http = free_port()
        daemon = self.daemon(
            "extensions:\n  basicauth:\n    htpasswd:\n      inline: 'u:canary-password'\n"
            "  bearertokenauth:\n    token: canary-token\n"
            "receivers:\n  otlp:\n    protocols:\n      http:\n"
            f"        endpoint: 127.0.0.1:{http}\n"
            + ask_for.format("basicauth")
            + "processors:\n  resource:\n    attributes:\n"
            "    - {key: sender, action: insert, from_context: auth.username}\n"
            f"exporters:\n  otlphttp:\n    endpoint: http://127.0.0.1:{behind}\n"
            "    headers:\n      authorization: overwritten\n"
            "    auth:\n      authenticator: bearertokenauth\n"
            f"service:\n  extensions: [basicauth, bearertokenauth]\n{case.QUIET}  pipelines:\n"
            "    traces: {receivers: [otlp], processors: [resource], exporters: [otlphttp]}\n"
        )
        front = self.collector(
            "  basicauth:\n    client_auth:\n      username: u\n      password: canary-password\n",
            exporter=f"  otlphttp:\n    endpoint: http://127.0.0.1:{http}\n"
            "    auth:\n      authenticator: basicauth\n",
        )
        body = otlp.traces(5)
        self.assertEqual(client.post(front, "traces", body.SerializeToString()).status, 200)
        sink.wait(lambda requests: len(requests) > 0)
        spans = otlp.decode("traces", sink.accepted()[0].payload).resource_spans
        senders = [
            attribute.value.string_value
            for resource in spans
            for attribute in resource.resource.attributes
            if attribute.key == "sender"
        ]
        self.assertEqual(senders, ["u"] * len(spans))
        for secret in SECRETS:
            self.assertNotIn(secret, daemon.log())

    def test_a_changed_file_is_used_and_no_secret_is_shown(self):
        sink = self.sink()
        http = free_port()
        with tempfile.TemporaryDirectory() as directory:
            tokens = os.path.join(directory, "tokens")
            self.write(tokens, "canary-file\n")
            daemon = self.daemon(
                f"extensions:\n  bearertokenauth:\n    filename: {tokens}\n"
                "receivers:\n  otlp:\n    protocols:\n      http:\n"
                f"        endpoint: 127.0.0.1:{http}\n"
                "        auth:\n          authenticator: bearertokenauth\n"
                f"exporters:\n  otlphttp:\n    endpoint: {sink.url}\n"
                f"service:\n  extensions: [bearertokenauth]\n{case.QUIET}  pipelines:\n"
                "    traces: {receivers: [otlp], exporters: [otlphttp]}\n"
            )
            self.assertEqual(self.send(http, "canary-file"), 200)
            self.assertEqual(self.send(http, "canary-token"), 401)
            self.write(tokens, "canary-token\n")
            process.poll_until(
                lambda: self.send(http, "canary-token") == 200,
                within=client.TIMEOUT_S,
                what="the new token to be let in",
            )
            self.assertEqual(self.send(http, "canary-file"), 401)
            for secret in SECRETS:
                self.assertNotIn(secret, daemon.log())

    def test_unauthenticated_grpc_calls_reveal_nothing_of_methods_and_messages(self):
        grpc = free_port()
        self.daemon(
            "extensions: {bearertokenauth: {token: canary-token}}\n"
            f"receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '127.0.0.1:{grpc}', "
            "auth: {authenticator: bearertokenauth}}}}}\nexporters: {nop: }\n"
            f"service:\n  extensions: [bearertokenauth]\n{case.QUIET}"
            "  pipelines: {traces: {receivers: [otlp], exporters: [nop]}}\n"
        )
        traces = client.SERVICES["traces"]
        for path, body, status in (
            (traces, grpc_frame(SPANS), "0"),
            (traces, grpc_frame(b"\x0a\x09broken"), "3"),
            (traces + "s", grpc_frame(SPANS), "12"),
            ("/no.Service/Export", grpc_frame(SPANS), "12"),
        ):
            for token, expected in (("canary-token", status), ("wrong", "16")):
                with self.subTest(path=path, token=token):
                    headers = {"authorization": f"Bearer {token}"}
                    response = grpc_by_hand(grpc, body, path=path, headers=headers)
                    self.assertEqual(response.headers.get("grpc-status"), expected)

    def test_credentials_go_over_tls(self):
        """By gRPC, and by libcurl, which does https."""
        files = certificates.Certificates(self)
        grpc, http = free_port(), free_port()
        sink = self.sink()
        tls = (
            f"tls: {{cert_file: {files.path('server.pem')}, key_file: {files.path('server.key')}}}"
        )
        gate = f"{tls}, auth: {{authenticator: bearertokenauth}}"
        token = "extensions: {bearertokenauth: {token: canary-token}}\n"
        self.daemon(
            token + "receivers: {otlp: {protocols: {"
            f"grpc: {{endpoint: '127.0.0.1:{grpc}', {gate}}}, "
            f"http: {{endpoint: '127.0.0.1:{http}', {gate}}}}}}}}}\n"
            f"exporters: {{otlphttp: {{endpoint: '{sink.url}'}}}}\n"
            f"service:\n  extensions: [bearertokenauth]\n{case.QUIET}"
            "  pipelines: {traces: {receivers: [otlp], exporters: [otlphttp]}}\n"
        )
        way_in = free_port()
        trusting = f"tls: {{ca_file: {files.path('ca.pem')}}}"
        carrying = f"{trusting}, auth: {{authenticator: bearertokenauth}}"
        self.daemon(
            token
            + f"receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{way_in}'}}}}}}}}\n"
            f"exporters:\n  otlp_grpc: {{endpoint: 'localhost:{grpc}', {carrying}}}\n"
            f"  otlp_http: {{endpoint: 'https://localhost:{http}', {carrying}}}\n"
            f"service:\n  extensions: [bearertokenauth]\n{case.QUIET}"
            "  pipelines: {traces: {receivers: [otlp], exporters: [otlp_grpc, otlp_http]}}\n"
        )
        self.assertEqual(client.post(way_in, "traces", SPANS).status, 200)
        sink.wait(lambda requests: len(requests) == 2)
        self.assertEqual([request.payload for request in sink.accepted()], [SPANS, SPANS])

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def send(self, port, token):
        headers = {"Content-Type": client.PROTOBUF, "Authorization": f"Bearer {token}"}
        return client.request(port, "POST", "/v1/traces", SPANS, headers).status


class Flood(case.Case):
    """Checking a wrong password takes some 100 ms; a lane limits its time for such checks."""

    WRONG_MAX = 100

    def setUp(self):
        self.back_end = self.sink()
        self.ports = {name: free_port() for name in ("grpc", "http", "pyroscope")}
        auth = "auth: {authenticator: basicauth}"
        self.daemon(
            "extensions:\n  basicauth:\n    htpasswd:\n      inline: |\n"
            f"        known:{self.COSTLY}\n        fresh:{self.COSTLY}\n"
            "receivers:\n  otlp:\n    protocols:\n"
            f"      grpc: {{endpoint: '127.0.0.1:{self.ports['grpc']}', {auth}}}\n"
            f"      http: {{endpoint: '127.0.0.1:{self.ports['http']}', {auth}}}\n"
            f"  pyroscope: {{endpoint: '127.0.0.1:{self.ports['pyroscope']}', {auth}}}\n"
            f"exporters:\n  otlphttp:\n    endpoint: {self.back_end.url}\n"
            + case.UNCOMPRESSED
            + f"service:\n  extensions: [basicauth]\n{case.QUIET}  pipelines:\n"
            "    traces: {receivers: [otlp], exporters: [otlphttp]}\n"
            "    profiles: {receivers: [pyroscope], exporters: [otlphttp]}\n"
        )

    # bcrypt of "hello" in 2^12 rounds
    COSTLY = "$2b$12$abcdefghijklmnopqrstuuW3FogT0WLDxqwgLK23cI..2q07im5LG"

    def send_http(self, authorization):
        headers = {"Content-Type": client.PROTOBUF, "Authorization": authorization}
        response = client.request(self.ports["http"], "POST", "/v1/traces", SPANS, headers)
        return response.status, "retry-after" in response.headers

    def send_grpc(self, authorization):
        headers = {"authorization": authorization}
        response = grpc_by_hand(self.ports["grpc"], grpc_frame(SPANS), headers=headers)
        return response.headers["grpc-status"], "grpc-status-details-bin" in response.headers

    def send_pyroscope(self, authorization):
        headers = {"Content-Type": "text/plain", "Authorization": authorization}
        now = int(time.time())
        path = f"/ingest?name=app&from={now - 10}&until={now}&format=folded"
        response = client.request(self.ports["pyroscope"], "POST", path, b"a;b 1\n", headers)
        return response.status, "retry-after" in response.headers

    def check(self, send, granted, denied, busy):
        self.assertEqual(send(basic("known", "hello"))[0], granted)
        self.back_end.wait_for_requests(1)
        seen = set()
        for number in range(self.WRONG_MAX):
            status = send(basic("known", f"wrong {number}"))
            seen.add(status)
            if status[0] == busy:
                break
        self.assertLessEqual(seen, {(denied, False), (busy, True)})
        self.assertIn((busy, True), seen)
        # Passwords that were right before are cached; a new user has to retry.
        self.assertEqual(send(basic("known", "hello"))[0], granted)
        outcomes = []

        def is_granted():
            outcomes.append(send(basic("fresh", "hello")))
            return outcomes[-1][0] == granted

        process.poll_until(is_granted, 120, "the new user's request")
        self.assertLessEqual(set(outcomes[:-1]), {(busy, True)})
        self.back_end.wait_for_requests(3)
        self.assertEqual(len(self.back_end.requests), 3)

    def test_over_http(self):
        self.check(self.send_http, 200, 401, 503)

    def test_over_grpc(self):
        self.check(self.send_grpc, "0", "16", "14")

    def test_of_pyroscope(self):
        self.check(self.send_pyroscope, 200, 401, 503)


class Sdks(case.Case):
    """SDKs take their token from the environment."""

    def check(self, sdk):
        peers.need(sdk)
        for protocol in ("http", "grpc"):
            with self.subTest(protocol):
                self.check_one(sdk, protocol)

    def check_one(self, sdk, protocol):
        sink, ports = self.sink(), {"grpc": free_port(), "http": free_port()}
        gate = "auth: {authenticator: bearertokenauth}"
        pipelines = ", ".join(
            f"{signal}: {{receivers: [otlp], exporters: [otlphttp]}}" for signal in case.SIGNALS
        )
        self.daemon(
            "extensions: {bearertokenauth: {token: canary-token}}\n"
            "receivers: {otlp: {protocols: {"
            f"grpc: {{endpoint: '127.0.0.1:{ports['grpc']}', {gate}}}, "
            f"http: {{endpoint: '127.0.0.1:{ports['http']}', {gate}}}}}}}}}\n"
            f"exporters:\n  otlphttp:\n    endpoint: {sink.url}\n{case.DIRECT}"
            f"service:\n  extensions: [bearertokenauth]\n{case.QUIET}  pipelines: {{{pipelines}}}\n"
        )
        sent = peers.emit(
            sdk,
            headers="authorization=Bearer%20canary-token",
            protocol=protocol,
            endpoint=f"127.0.0.1:{ports[protocol]}",
            compression="none",
            service="e2e",
            spans=20,
            points=2,
            logs=2,
        )
        arrived = [request.payload for request in sink.accepted() if request.signal == "traces"]
        self.assertEqual(len(otlp.spans_of(arrived)), len(sent["spans"]))

    def test_python(self):
        self.check("python")

    def test_node(self):
        self.check("node")

    def test_go(self):
        self.check("go")

    def test_java(self):
        self.check("java")


def name_of(section):
    return section.split(":")[0].strip()


if __name__ == "__main__":
    case.main()
